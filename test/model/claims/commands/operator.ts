// Operators, cron and disasters: replay, discard, reconcile, expire, reap, open and close, more slots, a lost cache.

import fc, { type Arbitrary, type AsyncCommand } from 'fast-check';
import { namesOf, pick, step } from '../../step.ts';
import { ensure, ensureSame } from '../../violation.ts';
import type { Letter, Model } from '../model.ts';
import type { World } from '../world.ts';

type Command = Arbitrary<AsyncCommand<Model, World>>;

const LETTERS_MAX = 3;
const MORE_SLOTS_MAX = 2;
/** No letter ever has this id. */
const UNKNOWN_LETTER = 1_000_000_000;

/** A user that buyers never are. */
const BOX_OFFICE = 'box';

const anyNumber = fc.nat(11);
const someLetters = fc.tuple(
  fc.array(anyNumber, { minLength: 1, maxLength: LETTERS_MAX }),
  fc.boolean(),
  fc.integer({ min: 0, max: 9 }).map((number) => number === 0),
);

function chosen(model: Model, numbers: readonly number[]): Letter[] {
  const letters = new Set(numbers.map((number) => pick(model.letters, number)));
  return [...letters].sort((one, other) => one.id - other.id);
}

const operate = (
  verb: 'replay' | 'discard',
  apply: (model: Model, world: World, letter: Letter, outcome: string | undefined) => Promise<string>,
): Command =>
  someLetters.map(([numbers, withUnknown, isDryRun]) =>
    step(
      `${verb} ${numbers}`,
      (model) => model.letters.length > 0,
      async (model, world) => {
        const letters = chosen(model, numbers);
        const ids = letters.map(({ id }) => id);
        const of = letters.map(({ claim }) => claim.name).join(' ');
        world.doing(`an operator ${isDryRun ? 'tries to ' : ''}${verb} the letters of ${of}`);
        const outcomes = await world.operate(verb, withUnknown ? [...ids, UNKNOWN_LETTER] : ids, isDryRun);
        world.got([...outcomes.values()].join(', '));
        if (withUnknown)
          ensure(outcomes.get(UNKNOWN_LETTER) === 'not_found', 'model', () => 'an unknown letter was found');
        for (const letter of letters) {
          const outcome = outcomes.get(letter.id);
          const expected = isDryRun
            ? dryRun(model, verb, letter)
            : await apply(model, world, letter, outcome);
          ensure(outcome === expected, 'I6', () => `${verb} answers ${outcome}, not ${expected}`);
          if (!isDryRun) model.audit.push(`dead_letter_${verb}`);
        }
      },
    ),
  );

function dryRun(model: Model, verb: 'replay' | 'discard', letter: Letter): string {
  if (verb === 'replay') return 'would_replay';
  return model.discardAnswer(letter) === 'ticket_conflict' ? 'ticket_conflict' : 'would_discard';
}

export const replay: Command = operate('replay', async (model, world, letter, outcome) => {
  const { claim } = letter;
  const { pool } = claim.slot;
  const answer = model.replayAnswer(letter);
  if (answer === 'replayed') {
    const [ids] = await world.idsOf([claim.slot.id]);
    ensure(ids?.claimId === claim.id, 'I6', () => `${claim.name} was replayed and is gone`);
    model.replay(letter, ids.msgId);
    return answer;
  }
  if (answer !== 'anew') return answer;
  const refusals = model.refusals(pool, claim.user);
  if (refusals.length > 0) return refusals.find((refusal) => refusal === outcome) ?? refusals.join();
  // One at a time: of two replays in one call the second one may have found the first one's slot gone.
  const fresh = (await world.newClaims(pool, claim.user, model.claims))[0];
  const slot = model.slots.find(({ id }) => id === fresh?.slotId);
  ensure(
    fresh !== undefined && slot !== undefined,
    'I6',
    () => `${claim.name} was replayed and has no new claim`,
  );
  ensure(model.freeSlots(pool).includes(slot), 'I2', () => `${slot.name} was not free`);
  model.dropLetter(letter);
  model.claim(slot, claim.user, null, fresh);
  return 'claimed';
});

export const discard: Command = operate('discard', async (model, _world, letter) => {
  const answer = model.discardAnswer(letter);
  if (answer !== 'ticket_conflict') model.discard(letter);
  return answer;
});

export const reconcile: Command = fc.boolean().map((isFix) =>
  step(
    isFix ? 'reconcile --fix' : 'reconcile',
    () => true,
    (model, world) => compare(model, world, isFix),
  ),
);

export async function compare(model: Model, world: World, isFix: boolean): Promise<void> {
  world.doing(isFix ? 'reconcile --fix' : 'reconcile');
  const found = await world.differences();
  model.isCacheLost = false;
  const expected = model.differences();
  ensureSame(
    'I3',
    found.map(({ kind, slot_id }) => `${kind} ${slot_id}`),
    expected.map(({ kind, slot }) => `${kind} ${slot.id}`),
  );
  const fixed: string[] = [];
  if (isFix) {
    for (const { kind, slot_id, ticket } of found) {
      const own = expected.find(({ slot }) => slot.id === slot_id);
      if (own === undefined) continue;
      const must = model.fix(own);
      const outcome = await world.fix(slot_id, kind, ticket);
      ensure(outcome === must, 'I3', () => `the repair of ${kind} answers ${outcome}, not ${must}`);
      fixed.push(outcome);
    }
  }
  const told = expected.map(({ kind, slot }, at) => `${kind} ${slot.name} ${fixed[at] ?? ''}`.trim());
  world.got(told.length === 0 ? 'no differences' : told.join(', '));
}

export const holdRunsOut: Command = anyNumber.map((at) =>
  step(
    `a hold runs out ${at}`,
    (model) => model.claims.some(({ hold }) => hold === 'running'),
    async (model, world) => {
      const claim = pick(
        model.claims.filter(({ hold }) => hold === 'running'),
        at,
      );
      world.doing(`time passes: the hold of ${claim.name} runs out`);
      await world.holdRunsOut(claim);
      claim.hold = 'over';
    },
  ),
);

export const expireHolds: Command = fc.constant(
  step<Model, World>(
    'expire holds',
    (model) => model.claims.some(({ hold }) => hold === 'over'),
    async (model, world) => {
      world.doing('expire holds');
      const due = model.dueHolds();
      const count = await world.expireHolds();
      ensure(count === due.length, 'I6', () => `${count} holds expired, not ${due.length} (${namesOf(due)})`);
      for (const claim of due) model.expire(claim);
      model.isCacheLost = false;
      world.got(namesOf(due));
    },
  ),
);

/** A worker tells the ledger which claims end, and may die before it tells the intake. */
export const tellLedger: Command = fc.constant(
  step<Model, World>(
    'tell the ledger of ends',
    (model) => model.claims.some(({ endAs }) => endAs !== null),
    tellOfEnds,
  ),
);

export async function tellOfEnds(model: Model, world: World): Promise<void> {
  world.doing('a worker tells the ledger which claims end');
  const ending = model.claims.filter(({ endAs }) => endAs !== null);
  ensureSame(
    'I6',
    await world.takeEnds(),
    ending.map(({ id }) => id),
  );
  model.isCacheLost = false;
  const outcomes = await world.voidTickets(ending);
  for (const claim of ending) {
    const heard = model.voidTicket(claim);
    const outcome = outcomes.get(claim.id);
    ensure(
      outcome === heard.outcome,
      'I3',
      () => `the end of ${claim.name} answers ${outcome}, not ${heard.outcome}`,
    );
    model.heard.push(heard);
  }
  world.got(ending.map(({ id, name }) => `${name} ${outcomes.get(id)}`).join(', '));
}

/** However late: what the ledger said stays true. */
export const tellIntake: Command = fc.constant(
  step<Model, World>('tell the intake of ends', (model) => model.heard.length > 0, finishHeard),
);

export async function finishHeard(model: Model, world: World): Promise<void> {
  world.doing(`a worker ends ${namesOf(model.heard.map(({ claim }) => claim))}`);
  // A claim that two looks have heard of is named once in a call.
  const heard = [...new Map(model.heard.map((one) => [one.claim, one])).values()];
  const count = await world.finishEnds(heard);
  const ended = model.finishEnds(heard);
  model.heard = [];
  ensure(count === ended.length, 'I6', () => `${count} claims ended, not ${ended.length}`);
  world.got(namesOf(ended.map(({ claim }) => claim)));
}

/** RESERVED by hand: what old callers leave behind when they die. */
export const orphan: Command = anyNumber.map((at) =>
  step(
    `orphan ${at}`,
    (model) => !model.isCacheLost && model.pools.some((pool) => model.freeSlots(pool).length > 0),
    async (model, world) => {
      const slot = pick(
        model.pools.flatMap((pool) => model.freeSlots(pool)),
        at,
      );
      world.doing(`a person reserves ${slot.name} by hand and walks away`);
      await world.orphan(slot);
      slot.isOrphan = true;
    },
  ),
);

export const reap: Command = fc.constant(step<Model, World>('reap', () => true, reapOrphans));

export async function reapOrphans(model: Model, world: World): Promise<void> {
  world.doing('reap orphaned slots');
  const orphans = model.slots.filter((slot) => model.liveClaim(slot) === undefined && slot.isOrphan);
  const count = await world.reap();
  ensure(count === orphans.length, 'I5', () => `${count} slots were reaped, not ${orphans.length}`);
  for (const slot of orphans) slot.isOrphan = false;
  model.isCacheLost = false;
  world.got(namesOf(orphans));
}

const turn = (isOpen: boolean): Command =>
  anyNumber.map((at) =>
    step(
      `${isOpen ? 'open' : 'close'} ${at}`,
      (model) => model.pools.some((pool) => pool.isOpen !== isOpen),
      async (model, world) => {
        const pool = pick(
          model.pools.filter((other) => other.isOpen !== isOpen),
          at,
        );
        world.doing(`${isOpen ? 'open' : 'close'} pool ${pool.id}`);
        await world.openPool(pool, isOpen);
        pool.isOpen = isOpen;
      },
    ),
  );
export const openPool = turn(true);
export const closePool = turn(false);

export const addSlots: Command = fc
  .tuple(anyNumber, fc.integer({ min: 1, max: MORE_SLOTS_MAX }))
  .map(([at, count]) =>
    step(
      `add ${count} slots to ${at}`,
      () => true,
      async (model, world) => {
        const pool = pick(model.pools, at);
        world.doing(`put ${count} more slots of ${pool.id} on sale`);
        const ids = await world.addSlots(pool, count);
        for (const id of ids) {
          const number = model.slots.filter((slot) => slot.pool === pool).length + 1;
          model.slots.push({ id, name: `${pool.id}${number}`, pool, isOrphan: false });
        }
      },
    ),
  );

/** Past the intake, which cannot know it: the only way to a slot that has two owners. */
export const sellAtLedger: Command = anyNumber.map((at) =>
  step(
    `sell ${at} at the ledger`,
    () => true,
    async (model, world) => {
      const slot = pick(model.slots, at);
      world.doing(`the box office writes a ticket for ${slot.name} past the intake`);
      const expected = model.sellAtLedger(slot, BOX_OFFICE);
      const answer = await world.sellAtLedger(slot, BOX_OFFICE);
      ensure(answer === expected, 'I2', () => `selling ${slot.name} answers ${answer}, not ${expected}`);
      world.got(answer);
    },
  ),
);

export const loseCache: Command = fc.constant(
  step<Model, World>(
    'lose the cache',
    () => true,
    async (model, world) => {
      world.doing('the slot cache is lost, as in a crash');
      await world.loseCache();
      model.loseCache();
    },
  ),
);

export const lookAtPool: Command = anyNumber.map((at) =>
  step(
    `look at ${at}`,
    () => true,
    async (model, world) => {
      const pool = pick(model.pools, at);
      world.doing(`look at pool ${pool.id}`);
      const status = await world.poolStatus(pool);
      const free = model.freeSlots(pool).length;
      const capacity = model.slots.filter((slot) => slot.pool === pool).length;
      const open = free > 0 ? 'open' : 'sold_out';
      const expected = `${pool.isOpen ? open : 'closed'} ${free} of ${capacity}`;
      const told = `${status?.status} ${status?.available} of ${status?.capacity}`;
      ensure(told === expected, 'I5', () => `pool ${pool.id} is ${told}, not ${expected}`);
      world.got(told);
    },
  ),
);
