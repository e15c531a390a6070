// The calls of workers and doors, as they are, or wired wrongly by a control.

import type { CallFunction } from '#core/call_function.ts';
import type { Ask } from './actors.ts';
import type { World } from './world.ts';

type Calls = { db1: CallFunction; db2: CallFunction };

/** What a control changes about one call; undefined: nothing. */
type Break = (world: World, calls: Calls) => Partial<Calls>;

export const BREAKS: Record<string, Break> = {};

export function breakCalls(world: World, ask: Ask): Calls {
  const gate =
    (to: 'db1' | 'db2'): CallFunction =>
    (name, args) =>
      ask(to, name, () => world.call(to)(name, args));
  let calls: Calls = { db1: gate('db1'), db2: gate('db2') };
  for (const name of world.breaks) calls = { ...calls, ...BREAKS[name]?.(world, calls) };
  return calls;
}
