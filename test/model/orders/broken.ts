// The calls of workers and doors, as they are, or wired wrongly by a control.

import type { CallFunction } from '#core/call_function.ts';
import type { Ask } from './actors.ts';
import type { World } from './world.ts';

type Args = Record<string, unknown>;
type Calls = { db1: CallFunction; db2: CallFunction };

/** Each call of one function goes this way instead. */
const instead = (call: CallFunction, name: string, other: (args: Args) => Promise<unknown[]>): CallFunction =>
  (async (called: string, args: Args) =>
    called === name ? other(args) : call(called, args)) as CallFunction;

const BREAKS: Record<string, (calls: Calls, world: World, ask: Ask) => Calls> = {
  'free-before-tombstone'({ db1, db2 }) {
    let tombstones: Args | undefined;
    return {
      db2: instead(db2, 'void_order_tickets', async (args) => {
        tombstones = args;
        return [];
      }),
      db1: instead(db1, 'finish_void', async (args) => {
        const ended = await db1('finish_void', args);
        if (tombstones !== undefined) await db2('void_order_tickets', tombstones);
        return ended;
      }),
    };
  },
  'no-pull': ({ db1, db2 }) => ({ db1, db2: instead(db2, 'record_pulled', async () => []) }),
  'complete-ignored': ({ db1, db2 }) => ({
    db1: instead(db1, 'close_checkout', (args) =>
      db1('close_checkout', { ...args, p_state: args.p_state === 'complete' ? 'expired' : args.p_state }),
    ),
    db2,
  }),
  // The row is made up, undone, and written with its session.
  'checkout-unrecorded': ({ db1, db2 }, world, ask) => ({
    db1: instead(
      instead(db1, 'begin_checkout', (args) =>
        ask('db1', 'begin_checkout, not kept', async () => {
          await world.side('db1').run('begin');
          try {
            return await world.call('db1')('begin_checkout', args);
          } finally {
            await world.side('db1').run('rollback');
          }
        }),
      ),
      'checkout_created',
      async (args) => {
        await ask('db1', 'writes the checkout', () => world.writeCheckout(args));
        return db1('checkout_created', args);
      },
    ),
    db2,
  }),
};

export function breakCalls(world: World, ask: Ask): Calls {
  const gate =
    (to: 'db1' | 'db2'): CallFunction =>
    (name, args) =>
      ask(to, name, () => world.call(to)(name, args));
  let calls: Calls = { db1: gate('db1'), db2: gate('db2') };
  for (const name of world.breaks) calls = BREAKS[name]?.(calls, world, ask) ?? calls;
  return calls;
}
