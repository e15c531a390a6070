// Buyers: claim, claim again, claim in a crowd, release.

import fc, { type Arbitrary, type AsyncCommand } from 'fast-check';
import { pick, preferred, step } from '../../step.ts';
import { ensure } from '../../violation.ts';
import { type Claim, hasEnded, type Model, type Slot } from '../model.ts';
import type { ClaimAnswer, Request, World } from '../world.ts';

type Command = Arbitrary<AsyncCommand<Model, World>>;

const USERS = ['u1', 'u2', 'u3'];
const REQUESTS = 5;
const BATCH_MAX = 4;

const anyNumber = fc.nat(11);
const anyUser = fc.constantFrom(...USERS);
const anyRequest = fc.option(
  fc.integer({ min: 1, max: REQUESTS }).map((number) => `r${number}`),
  { freq: 2 },
);
const wish = fc.record({ pool: fc.nat(1), user: anyUser, request: anyRequest });
type Wish = { pool: number; user: string; request: string | null };

const describe = ({ pool, user, request }: Request): string =>
  `${pool.id} for ${user}${request === null ? '' : ` (${request})`}`;

const requestOf = (model: Model, { pool, user, request }: Wish): Request => ({
  pool: pick(model.pools, pool),
  user,
  request,
});

export const claimOne: Command = wish.map((wanted) =>
  step(
    `claim ${JSON.stringify(wanted)}`,
    () => true,
    (model, world) => askOne(model, world, requestOf(model, wanted)),
  ),
);

/** The same request again, by its owner or with another user's name: that is another request. */
export const retry: Command = fc.tuple(anyNumber, fc.boolean(), fc.boolean()).map(([at, isOwner, isBatch]) =>
  step(
    `retry ${at} by ${isOwner ? 'its owner' : 'another'}`,
    (model) => model.claims.some(({ request }) => request !== null),
    async (model, world) => {
      const claim = pick(
        model.claims.filter(({ request }) => request !== null),
        at,
      );
      const user = isOwner ? claim.user : pick(USERS, USERS.indexOf(claim.user) + 1);
      const request = { pool: claim.slot.pool, user, request: claim.request };
      await (isBatch ? askMany(model, world, [request]) : askOne(model, world, request));
    },
  ),
);

export const claimBatch: Command = fc.array(wish, { minLength: 1, maxLength: BATCH_MAX }).map((wishes) =>
  step(
    `claim in a batch ${JSON.stringify(wishes)}`,
    () => true,
    (model, world) =>
      askMany(
        model,
        world,
        wishes.map((wanted) => requestOf(model, wanted)),
      ),
  ),
);

async function askOne(model: Model, world: World, request: Request): Promise<void> {
  world.doing(`claim ${describe(request)}`);
  const answer = await world.claimOne(request);
  const known = model.claimOf(request);
  if (answer.outcome === 'sold') answer.outcome = known === undefined ? 'claimed' : 'same';
  else if (answer.outcome === 'ended') {
    // The single claim says "ended" where the batch shows the claim.
    ensure(known !== undefined && hasEnded(known), 'model', () => 'a claim is called ended that has not');
    world.got(`ended (${known.name})`);
    return;
  }
  await learn(model, world, [request], [answer]);
}

async function askMany(model: Model, world: World, requests: Request[]): Promise<void> {
  world.doing(`claim in one batch ${requests.map(describe).join(', ')}`);
  const answers = await world.claimBatch(requests);
  ensure(answers.length === requests.length, 'model', () => `${answers.length} answers`);
  await learn(model, world, requests, answers);
}

/**
 * Judges the answers to requests that were made together. The model believes a claim if the slot was free. Every other
 * request must have a reason that holds after the claims: then no order of serving them could have done better.
 */
async function learn(
  model: Model,
  world: World,
  requests: readonly Request[],
  answers: readonly ClaimAnswer[],
): Promise<void> {
  const pairs = requests.map((request, at) => ({ request, answer: answers[at] as ClaimAnswer }));
  const claimed = pairs.filter(({ answer }) => answer.outcome === 'claimed');
  const ids = await world.idsOf(claimed.map(({ answer }) => answer.slotId ?? ''));
  for (const { request, answer } of claimed) {
    const { pool, user } = request;
    const slot = slotOf(model, answer.slotId);
    const owner = model.liveClaim(slot);
    ensure(
      owner === undefined && slot.pool === pool,
      'I2',
      () => `${slot.name} is ${owner?.name ?? 'elsewhere'}`,
    );
    ensure(!slot.isOrphan, 'model', () => `${slot.name} was not on sale`);
    const refusals = model.refusals(pool, user);
    ensure(refusals.length === 0, 'model', () => `claimed though ${refusals}`);
    ensure(model.claimOf(request) === undefined, 'model', () => `a second claim of a request`);
    const own = ids.find(({ slotId }) => slotId === slot.id);
    ensure(own !== undefined, 'I1', () => `${slot.name} was acknowledged and has no claim`);
    model.claim(slot, user, request.request, own);
    world.told.push({ claimId: own.claimId, slotId: slot.id, user });
  }
  for (const { request, answer } of pairs) if (answer.outcome !== 'claimed') judge(model, request, answer);
  world.got(pairs.map(({ request, answer }) => result(model, request, answer)).join(', '));
}

function judge(model: Model, request: Request, answer: ClaimAnswer): void {
  const known = model.claimOf(request);
  const expected = known === undefined ? model.refusals(request.pool, request.user) : [sameOf(known)];
  ensure(
    expected.includes(answer.outcome),
    known === undefined ? 'model' : 'I1',
    () => `${answer.outcome} instead of ${expected.join(' or ')}`,
  );
  if (known !== undefined)
    ensure(answer.slotId === known.slot.id, 'I1', () => `another slot than ${known.slot.name}`);
}

function sameOf(known: Claim): string {
  return hasEnded(known) ? `same ${known.state}` : 'same';
}

function slotOf(model: Model, id: string | null): Slot {
  const slot = model.slots.find((other) => other.id === id);
  ensure(slot !== undefined, 'I4', () => `slot ${id} was sold and was never put on sale`);
  return slot;
}

function result(model: Model, request: Request, { outcome, slotId }: ClaimAnswer): string {
  const slot = model.slots.find(({ id }) => id === slotId);
  const claim = slot && (model.claimOf(request) ?? model.liveClaim(slot));
  return slot ? `${outcome} ${slot.name} (${claim?.name})` : outcome;
}

export const release: Command = fc
  .tuple(anyNumber, fc.constantFrom('owner', 'another', 'operator'))
  .map(([at, who]) =>
    step(
      `release ${at} by ${who}`,
      (model) => model.claims.length > 0,
      async (model, world) => {
        // Most claims can no longer be released. Every second time this takes one whose message no worker has tried yet.
        const isWaiting = (other: Claim) => other.state === 'queued' && model.messageOf(other)?.readCt === 0;
        const claim = pick(at % 2 === 0 ? preferred(model.claims, isWaiting) : model.claims, at >> 1);
        const user = who === 'operator' ? null : who === 'owner' ? claim.user : 'u0';
        world.doing(`release ${claim.name} by its ${who}`);
        const expected = model.releaseAnswer(claim, user);
        const answer = await world.release(claim, user);
        ensure(
          answer === expected,
          'I6',
          () => `release of ${claim.name} answers ${answer}, not ${expected}`,
        );
        if ((answer === 'released' && !hasEnded(claim)) || (answer === 'ending' && claim.endAs === null)) {
          if (answer === 'released') model.end(claim, 'released');
          else model.beginEnd(claim, 'released');
          if (user === null) model.audit.push('claim_release');
        }
        world.got(answer);
      },
    ),
  );
