// Workers of three kinds: those that let SQL handlers run in sets, those that run handlers of their own under a lease, and
// old ones that know no tokens. Each is slower than its lease whenever the history says so.

import fc, { type Arbitrary, type AsyncCommand } from 'fast-check';
import { pick, step, workerSteps } from '../../step.ts';
import { ensure, ensureSame } from '../../violation.ts';
import type { Event, Lease, Model, Outcome } from '../model.ts';
import type { Taken, World } from '../world.ts';

type Command = Arbitrary<AsyncCommand<Model, World>>;

const WORKERS = ['w1', 'w2'];
const TAKE_MAX = 5;

const anyNumber = fc.nat(11);
const anyWorker = fc.constantFrom(...WORKERS);
const hands = (model: Model, worker: string): Lease[] =>
  model.leases.filter((lease) => lease.worker === worker);
const names = (events: readonly { name: string }[]): string => events.map(({ name }) => name).join(' ');
const leased = (leases: readonly Lease[]): string =>
  leases.map(({ event, token }) => `${event.name}#${token}`).join(' ');
const forget = (model: Model, leases: readonly Lease[]): void => {
  model.leases = model.leases.filter((lease) => !leases.includes(lease));
};

export const take: Command = fc
  .tuple(anyWorker, fc.integer({ min: 1, max: TAKE_MAX }))
  .map(([worker, limit]) =>
    step(
      `${worker} takes ${limit}`,
      () => true,
      async (model, world) => {
        await takeSome(model, world, worker, limit);
      },
    ),
  );

export async function takeSome(model: Model, world: World, worker: string, limit: number): Promise<Lease[]> {
  world.doing(`${worker} takes up to ${limit} of each lane`);
  return hold(model, world, worker, await world.take(limit), model.take(limit));
}

export async function takeOneSuspect(model: Model, world: World, worker: string): Promise<Lease[]> {
  world.doing(`${worker} takes a suspect`);
  return hold(model, world, worker, await world.takeSuspect(), model.takeSuspect());
}

export const takeSuspect: Command = anyWorker.map((worker) =>
  step(
    `${worker} takes a suspect`,
    () => true,
    async (model, world) => {
      await takeOneSuspect(model, world, worker);
    },
  ),
);

function hold(model: Model, world: World, worker: string, rows: Taken[], events: Event[]): Lease[] {
  ensureSame(
    'I9',
    rows.map(({ id, attempts, takeovers }) => `event ${id} attempt ${attempts} takeover ${takeovers}`),
    events.map(({ id, attempts, takeovers }) => `event ${id} attempt ${attempts + 1} takeover ${takeovers}`),
  );
  const leases = events.map((event): Lease => {
    const row = rows.find(({ id }) => id === event.id);
    return { worker, event, token: event.token ?? 0, text: row?.token ?? '' };
  });
  model.leases.push(...leases);
  world.got(leases.length === 0 ? 'nothing' : leased(leases));
  return leases;
}

export const process: Command = fc.tuple(anyWorker, anyNumber).map(([worker, count]) =>
  step(
    `${worker} processes ${count}`,
    (model) => hands(model, worker).length > 0,
    (model, world) => {
      const own = hands(model, worker);
      return processSome(model, world, worker, own.slice(0, 1 + (count % own.length)));
    },
  ),
);

export async function processSome(model: Model, world: World, worker: string, all: Lease[]): Promise<void> {
  // One event twice in one call has one token: the newest lease's.
  const leases = [...new Map(all.map((lease) => [lease.event, lease])).values()];
  world.doing(`${worker} processes ${leased(leases)}`);
  const outcomes = await world.process(leases);
  world.got(leases.map(({ event }) => outcomes.get(event.id)).join(', '));
  const held = leases.filter((lease) => model.holds(lease));
  model.handle(held.map(({ event }) => event));
  for (const lease of leases) {
    const expected = held.includes(lease) ? lease.event.status : 'lost_lease';
    const outcome = outcomes.get(lease.event.id);
    ensure(outcome === expected, 'I9', () => `${lease.event.name} is ${outcome}, not ${expected}`);
  }
  forget(model, leases);
}

const OUTCOMES: Outcome[] = [
  'success',
  'success',
  'failed',
  'slow',
  'dead_letter',
  'again',
  'outage',
  'later',
  'pending',
];

/** A handler of the worker's own, for the shop's events. */
export const finish: Command = fc
  .tuple(anyWorker, anyNumber, fc.constantFrom(...OUTCOMES))
  .map(([worker, at, outcome]) =>
    step(
      `${worker} finishes ${at} as ${outcome}`,
      (model) => hands(model, worker).some(({ event }) => event.notice === null),
      async (model, world) => {
        const lease = pick(
          hands(model, worker).filter(({ event }) => event.notice === null),
          at,
        );
        const { event } = lease;
        world.doing(`${worker} finishes ${leased([lease])} as ${outcome}`);
        const isHeld = model.holds(lease);
        const answer = await world.finish(lease, outcome);
        if (isHeld) {
          if (outcome === 'success') event.effects++;
          model.mark(event, outcome);
        }
        const expected = isHeld ? event.status : 'lost_lease';
        ensure(answer === expected, 'I9', () => `${event.name} is ${answer}, not ${expected}`);
        forget(model, [lease]);
        world.got(answer);
      },
    ),
  );

export const claimNext: Command = fc.constant(
  step<Model, World>(
    'an old worker claims the next event',
    () => true,
    async (model, world) => {
      world.doing('an old worker claims the next event');
      const id = await world.claimNext();
      const event = model.claimNext();
      ensure(id === event?.id, 'I9', () => `it gets ${id}, not ${event?.name}`);
      if (event?.token != null) model.remembered.set(event, event.token);
      world.got(event?.name ?? 'nothing');
    },
  ),
);

/** Also about events that others have taken: it cannot tell. */
export const markResult: Command = fc
  .tuple(anyNumber, fc.constantFrom('success', 'failed', 'pending'))
  .map(([at, status]) =>
    step(
      `an old worker marks ${at} as ${status}`,
      (model) => [...model.remembered.keys()].some(({ notice }) => notice === null),
      async (model, world) => {
        const known = [...model.remembered].filter(([{ notice }]) => notice === null);
        const [event, token] = pick(known, at);
        world.doing(`an old worker marks ${event.name} as ${status}`);
        const isHeld = event.status === 'processing' && event.token === token && !event.isLeaseOver;
        const answer = await world.markResult(event, status);
        const expected = isHeld ? 'marked' : 'SL033';
        ensure(answer === expected, 'I9', () => `the mark answers ${answer}, not ${expected}`);
        if (isHeld) {
          if (status === 'success') event.effects++;
          model.mark(event, status, 1);
          model.remembered.delete(event);
        }
        world.got(answer);
      },
    ),
  );

/** As a door in inline mode: now, even if a worker has a lease on it. */
export const processNow: Command = anyNumber.map((at) =>
  step(
    `process ${at} at the door`,
    (model) => model.events.length > 0,
    async (model, world) => {
      const event = pick(model.events, at);
      world.doing(`the door processes ${event.name}`);
      const answer = await world.processNow(event);
      if (!model.hasEnded(event)) model.handle([event]);
      ensure(answer === event.status, 'I7', () => `${event.name} is ${answer}, not ${event.status}`);
      world.got(answer);
    },
  ),
);

export const { extend, crash } = workerSteps<Lease, Model, World>(anyWorker, {
  of: hands,
  names: leased,
  forget,
  async extend(world, all, held) {
    ensureSame(
      'I9',
      await world.extend(all),
      held.map(({ event }) => event.id),
    );
    for (const { event } of held) Object.assign(event, { isLeaseOver: false, dueSince: null });
  },
});

const waits = ({ status, dueSince }: Event): boolean =>
  dueSince === null && (status === 'processing' || status === 'failed');

/** A lease runs out, or the wait after a failure is over. */
export const timePasses: Command = fc.tuple(anyNumber, fc.boolean()).map(([at, isAll]) =>
  step(
    `time passes ${at}`,
    (model) => model.events.some(waits),
    async (model, world) => {
      const waiting = model.events.filter(waits);
      await letTimePass(model, world, isAll ? waiting : [pick(waiting, at)]);
    },
  ),
);

export async function letTimePass(model: Model, world: World, events: readonly Event[]): Promise<void> {
  world.doing(`time passes: ${names(events)} may be taken`);
  await world.timeComes(events);
  const now = model.tick();
  for (const event of events)
    Object.assign(event, { dueSince: now, isLeaseOver: event.status === 'processing' });
}
