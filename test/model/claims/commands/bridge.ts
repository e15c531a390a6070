// Workers: take, ask the ledger, finish, die. Two of them, each slower than its lease whenever the history says so. They
// are honest: what they finish a delivery with is what they know about it, however old that knowledge is.

import fc, { type Arbitrary, type AsyncCommand } from 'fast-check';
import { pick, preferred, step, workerSteps } from '../../step.ts';
import { ensure, ensureSame } from '../../violation.ts';
import type { Delivery, LedgerAnswer, Model } from '../model.ts';
import type { Finish, Taken, World } from '../world.ts';

type Command = Arbitrary<AsyncCommand<Model, World>>;

const WORKERS = ['w1', 'w2'];
const TAKE_MAX = 4;
/** Long enough to stay hidden for a whole history. */
const HIDDEN_MS = 3_600_000;

const anyNumber = fc.nat(11);
const anyWorker = fc.constantFrom(...WORKERS);
const hands = (model: Model, worker: string): Delivery[] =>
  model.deliveries.filter((delivery) => delivery.worker === worker);
const nameOf = ({ message, readCt }: Delivery): string => `${message.claim.name}#${readCt}`;
const names = (deliveries: readonly Delivery[]): string => deliveries.map(nameOf).join(' ');

export const take: Command = fc
  .tuple(anyWorker, fc.integer({ min: 1, max: TAKE_MAX }), fc.option(fc.nat(1), { freq: 8 }))
  .map(([worker, limit, paused]) =>
    step(
      `${worker} takes ${limit} of each lane`,
      () => true,
      async (model, world) => {
        await takeSome(model, world, worker, limit, paused);
      },
    ),
  );

export async function takeSome(
  model: Model,
  world: World,
  worker: string,
  limit: number,
  paused: number | null,
): Promise<Delivery[]> {
  const pools = paused === null ? [] : [pick(model.pools, paused)];
  world.doing(
    `${worker} takes up to ${limit} of each lane${pools.length > 0 ? `, none of ${pools[0]?.id}` : ''}`,
  );
  const rows = await world.take(limit, pools);
  const taken = model.take(worker, limit, pools);
  compareTaken(world, rows, taken);
  return taken;
}

function compareTaken(world: World, rows: Taken[], taken: Delivery[]): void {
  ensureSame(
    'I12',
    rows.map(
      ({ id, readCt, attempts, takeovers, claim, state }) =>
        `message ${id} ${readCt} ${attempts} ${takeovers} ${claim} ${state}`,
    ),
    taken.map(
      ({ message, readCt, attempts, takeovers }) =>
        `message ${message.id} ${readCt} ${attempts} ${takeovers} ${message.claim.id} ` +
        (message.claim.endAs === null ? message.claim.state : 'ending'),
    ),
  );
  world.got(taken.length === 0 ? 'nothing' : names(taken));
}

export const takeSuspect: Command = anyWorker.map((worker) =>
  step(
    `${worker} takes a suspect`,
    (model) => model.messages.some(({ readCt }) => readCt > 1),
    async (model, world) => {
      await takeOneSuspect(model, world, worker);
    },
  ),
);

async function takeOneSuspect(model: Model, world: World, worker: string): Promise<Delivery[]> {
  world.doing(`${worker} takes a suspect`);
  const rows = await world.takeSuspect();
  const suspects = model.suspects();
  const given = suspects.find(({ id }) => id === rows[0]?.id) ?? suspects[0];
  const taken = given === undefined ? [] : [model.deliver(worker, given)];
  compareTaken(world, rows, taken);
  return taken;
}

/** One after the other, until there is none. */
export async function takeSuspects(model: Model, world: World, worker: string): Promise<Delivery[]> {
  const taken: Delivery[] = [];
  for (;;) {
    const next = await takeOneSuspect(model, world, worker);
    if (next.length === 0) return taken;
    taken.push(...next);
  }
}

/** The worker writes its tickets, or asks for them where all attempts are used up. */
export const askLedger: Command = fc.tuple(anyWorker, anyNumber, fc.boolean()).map(([worker, at, isAll]) =>
  step(
    `${worker} asks the ledger about ${isAll ? 'all' : at}`,
    (model) => askable(model, worker).length > 0,
    (model, world) => {
      const open = askable(model, worker);
      // A worker that has lost its lease and does not know it is the one to fear.
      const slow = preferred(open, (delivery) => !model.holds(delivery));
      return ask(model, world, worker, isAll ? open : [pick(slow, at)]);
    },
  ),
);

const askable = (model: Model, worker: string): Delivery[] =>
  hands(model, worker).filter((delivery) => delivery.isValidated || model.isSpent(delivery));

export async function ask(model: Model, world: World, worker: string, deliveries: Delivery[]): Promise<void> {
  const spent = deliveries.filter((delivery) => model.isSpent(delivery));
  // The same claim may be in one pair of hands twice: a set names it once.
  const rest = new Map(
    deliveries
      .filter((delivery) => !spent.includes(delivery))
      .map((delivery) => [delivery.message.claim, delivery]),
  );
  if (spent.length > 0) {
    world.doing(`${worker} asks the ledger for the tickets of ${names(spent)}`);
    const answers = await world.ticketsOf(spent.map(({ message }) => message.claim));
    note(
      world,
      spent,
      answers,
      spent.map(({ message }) => model.ledgerAnswer(message.claim) ?? 'none'),
    );
  }
  if (rest.size > 0) {
    const writing = [...rest.values()];
    world.doing(`${worker} writes the tickets of ${names(writing)}`);
    const expected = writing.map(({ message }) => {
      const { claim } = message;
      const answer = model.tombstones.has(claim.id) ? 'voided' : (model.ledgerAnswer(claim) ?? 'committed');
      if (answer === 'committed') model.tickets.set(claim.slot, claim);
      return answer;
    });
    note(world, writing, await world.finalize(writing.map(({ message }) => message.claim)), expected);
  }
}

function note(world: World, deliveries: Delivery[], answers: string[], expected: LedgerAnswer[]): void {
  world.got(answers.join(' '));
  for (const [at, delivery] of deliveries.entries()) {
    ensure(answers[at] === expected[at], 'I3', () => `the ledger says ${answers[at]}, not ${expected[at]}`);
    delivery.answer = expected[at] ?? null;
  }
}

type Decision = Pick<Finish, 'verdict' | 'reason' | 'delayMs'>;

/** All that an honest worker may make of what it knows; the number chooses. */
function decide(model: Model, delivery: Delivery, choice: number): Decision {
  const end = (verdict: string, reason: string | null = null, delayMs = 0): Decision => ({
    verdict,
    reason,
    delayMs,
  });
  const { answer } = delivery;
  if (answer === 'conflict') return end('dead_letter', 'ticket_conflict');
  if (answer === 'committed' || answer === 'already') return end('committed');
  if (answer === 'voided') return end('gone', 'the claim has ended');
  if (answer === 'none') return end('dead_letter', 'max_retries');
  const delayMs = choice % 2 === 0 ? 0 : HIDDEN_MS;
  const options = [end('outage', 'ledger unavailable', delayMs), end('untried', 'handed back', delayMs)];
  if (!model.isSpent(delivery)) {
    // Twice: whatever operators do begins with a dead letter.
    const dead = end('dead_letter', '22023: planted');
    options.push(end('retry', 'XX000: planted', delayMs), dead, dead);
    if (!delivery.isValidated)
      options.push(end('validated'), end('refused', 'refused by validation: planted'));
  }
  return pick(options, choice >> 1);
}

export const finish: Command = fc
  .tuple(anyWorker, fc.array(anyNumber, { minLength: 1, maxLength: TAKE_MAX }))
  .map(([worker, choices]) =>
    step(
      `${worker} finishes ${choices}`,
      (model) => hands(model, worker).length > 0,
      (model, world) => {
        const finishes = hands(model, worker)
          .slice(0, choices.length)
          .map((delivery, at) => ({ delivery, ...decide(model, delivery, choices[at] ?? 0) }));
        return finishSome(model, world, worker, finishes);
      },
    ),
  );

export async function finishSome(model: Model, world: World, worker: string, all: Finish[]): Promise<void> {
  // One message twice in one call has one verdict: the newest delivery's.
  const finishes = [...new Map(all.map((finish) => [finish.delivery.message, finish])).values()];
  const told = finishes.map(({ delivery, verdict }) => `${nameOf(delivery)} ${verdict}`);
  world.doing(`${worker} finishes ${told.join(', ')}`);
  const outcomes = await world.finish(finishes);
  world.got(finishes.map(({ delivery }) => outcomes.get(delivery.message.id)).join(', '));
  const buried = finishes.filter(
    ({ delivery, verdict }) => verdict === 'dead_letter' && model.holds(delivery),
  );
  const letters =
    buried.length > 0 ? await world.lettersOf(buried.map(({ delivery }) => delivery.message)) : [];
  for (const { delivery, verdict, reason, delayMs } of finishes) {
    const isHeld = model.holds(delivery);
    const expected = isHeld ? verdict : 'lost_lease';
    const outcome = outcomes.get(delivery.message.id);
    ensure(
      outcome === expected,
      'I9',
      () => `finishing ${nameOf(delivery)} answers ${outcome}, not ${expected}`,
    );
    if (isHeld) {
      const letter = letters.find(({ msgId }) => msgId === delivery.message.id);
      ensure(
        verdict !== 'dead_letter' || letter !== undefined,
        'I6',
        () => `${nameOf(delivery)} has no letter`,
      );
      model.finish(delivery, verdict, reason, delayMs, letter?.id);
    }
    // A yes is remembered and the delivery goes on; who has lost the lease meanwhile has no business there.
    if (outcome === 'validated') delivery.isValidated = true;
    else model.forget([delivery]);
  }
}

/** The way of the first workers: past the finish, with the count of deliveries as the only fence. */
export const routeToDeadLetters: Command = fc.tuple(anyWorker, anyNumber).map(([worker, at]) =>
  step(
    `${worker} routes ${at} to the dead letters`,
    (model) => hands(model, worker).some(({ answer }) => answer === 'none'),
    async (model, world) => {
      const delivery = pick(
        hands(model, worker).filter(({ answer }) => answer === 'none'),
        at,
      );
      world.doing(`${worker} routes ${nameOf(delivery)} to the dead letters`);
      const isHeld = model.holds(delivery);
      const id = await world.routeToDeadLetters(delivery);
      ensure((id !== null) === isHeld, 'I9', () => `routing ${nameOf(delivery)} answers ${id}`);
      if (id !== null) model.finish(delivery, 'dead_letter', null, 0, id);
      model.forget([delivery]);
      world.got(id === null ? 'nothing' : 'done');
    },
  ),
);

export const { extend, crash } = workerSteps<Delivery, Model, World>(anyWorker, {
  of: hands,
  names,
  forget: (model, deliveries) => model.forget(deliveries),
  async extend(world, all, held) {
    const ids = await world.extend(all);
    ensureSame(
      'I9',
      ids.map(String),
      held.map(({ message }) => String(message.id)),
    );
    for (const { message } of held) message.isVisible = false;
  },
});

export const leaseEnds: Command = fc.tuple(anyNumber, fc.boolean()).map(([at, isAll]) =>
  step(
    `a lease ends ${at}`,
    (model) => model.messages.some(({ isVisible }) => !isVisible),
    async (model, world) => {
      const hidden = model.messages.filter(({ isVisible }) => !isVisible);
      const messages = isAll ? hidden : [pick(hidden, at)];
      world.doing(`time passes: ${messages.map(({ claim }) => claim.name).join(' ')} may be taken again`);
      await world.leaseEnds(messages);
      for (const message of messages) message.isVisible = true;
    },
  ),
);
