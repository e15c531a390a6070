// A worker is killed before and after every call it makes to the world; a fresh one takes over; every claim ends once.

import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { DEAD, FaultWorld, REFUSED, SOLD_ELSEWHERE, TICKET, type Wrap } from './fault_support.ts';
import { type Moment, Mortal } from './mortal.ts';

const REFUSED_USER = 'refused';
const POISON_USER = 'poison';
/** More calls than any scenario makes: a run that does not end before it is a bug of the test. */
const MOST_CALLS = 100;
const HASTY_ANSWER = [{ ordinal: 1, outcome: 'committed' }];

let world: FaultWorld;
let hook: Server;
let hookUrl: string;
/** How often the hook saw each idempotency key, by path. */
const seen = new Map<string, number>();
/** By the claim's id: the idempotency keys that were ever sent for it. */
const keysOf = new Map<unknown, Set<unknown>>();

before(async () => {
  world = await FaultWorld.start();
  await world.db2.query(
    `alter table public.confirmed_tickets add constraint no_poison check (user_id <> '${POISON_USER}')`,
  );
  await world.db2.query(
    `create function public.my_commit(p_payload jsonb) returns void language sql
     as $$ select public.finalize_transaction(p_payload) $$`,
  );
  hook = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const claim = request.headers['x-claim-id'];
      const key = `${request.url} ${claim}`;
      seen.set(key, (seen.get(key) ?? 0) + 1);
      keysOf.set(claim, (keysOf.get(claim) ?? new Set()).add(request.headers['x-idempotency-key']));
      const { user_id } = JSON.parse(Buffer.concat(chunks).toString());
      response.writeHead(request.url === '/validate' && user_id === REFUSED_USER ? 422 : 200).end();
    });
  });
  await new Promise<void>((resolve) => hook.listen(0, '127.0.0.1', resolve));
  hookUrl = `http://127.0.0.1:${(hook.address() as AddressInfo).port}`;
});

after(async () => {
  hook.closeAllConnections();
  hook.close();
  await world.stop();
});

interface Scenario {
  name: string;
  rules: () => Record<string, unknown>;
  /** How the claim of each user must end. */
  ends: Record<string, string>;
}

const SCENARIOS: Scenario[] = [
  { name: 'plain', rules: () => ({}), ends: { ann: TICKET, bob: TICKET, cyd: TICKET } },
  { name: 'poison', rules: () => ({}), ends: { ann: TICKET, bob: TICKET, [POISON_USER]: DEAD } },
  {
    name: 'validated',
    rules: () => ({ validation_webhook_url: `${hookUrl}/validate` }),
    ends: { ann: TICKET, bob: TICKET, [REFUSED_USER]: REFUSED },
  },
  {
    name: 'hooks only',
    rules: () => ({ validation_webhook_url: `${hookUrl}/validate`, commit_webhook_url: `${hookUrl}/commit` }),
    ends: { ann: SOLD_ELSEWHERE, bob: SOLD_ELSEWHERE },
  },
  {
    name: 'own function, metered',
    rules: () => ({ commit_rpc_name: 'my_commit', commit_rate_per_sec: 1_000 }),
    ends: { ann: TICKET, bob: TICKET },
  },
];

/** How many workers were lost with a message before: one that was taken and lost for the tenth time is not tried again. */
interface Past {
  name: string;
  lost: number;
  mayDie: boolean;
}

const NONE_LOST: Past = { name: '', lost: 0, mayDie: false };
const NINE_LOST: Past = { name: ', the tenth of its messages', lost: 9, mayDie: true };
const loseWorkers = (lost: number) =>
  world.db1.query('update pgmq.q_intake_queue set read_ct = read_ct + $1 where read_ct > 0', [lost]);

/** One run: sell, let a worker die at this call, let another finish. False when the worker got through alive. */
async function run(
  scenario: Scenario,
  { name, lost, mayDie }: Past,
  pool: string,
  dieAt: number,
  moment: Moment,
): Promise<boolean> {
  await world.sell(pool, Object.keys(scenario.ends), scenario.rules());
  await world.db1.query('delete from pgmq.q_intake_dlq');
  seen.clear();
  const mortal = new Mortal(dieAt, moment);
  const step = world.bridge({ wrap: mortal.wrap }).step(new AbortController().signal);
  await Promise.race([step, mortal.died]);
  const remembered = await world.db1.query(
    `select claim_id from public.claims where pool_id = $1 and state = 'validated'`,
    [pool],
  );
  await loseWorkers(lost);
  await world.drain();
  await mortal.bury(step);
  const where = `${scenario.name}${name}, killed ${mortal.diedAt}`;
  const ends = await world.ends(pool);
  const expected = Object.entries(scenario.ends).map(([user, end]) =>
    // A dead letter has no ticket: that is the point.
    [user, mayDie && ends[user] === DEAD ? DEAD : end],
  );
  assert.deepEqual(ends, Object.fromEntries(expected), where);
  const letters = Object.values(ends).filter((end) => end === DEAD).length;
  assert.equal(await world.count1('select count(*) from pgmq.q_intake_dlq'), letters, where);
  for (const { claim_id } of remembered.rows)
    assert.equal(
      seen.get(`/validate ${claim_id}`),
      1,
      `${where}: validated again although it was remembered`,
    );
  for (const [claim, keys] of keysOf) assert.equal(keys.size, 1, `${where}: ${claim} has one key`);
  for (const [key, times] of seen) assert.ok(times <= 2, `${where}: ${key} was sent ${times} times`);
  if (scenario.ends.ann === SOLD_ELSEWHERE) {
    const sold = [...seen.keys()].filter((key) => key.startsWith('/commit '));
    const all = Object.keys(scenario.ends).length;
    if (!mayDie) assert.equal(sold.length, all, `${where}: each claim was committed under one key`);
  }
  return mortal.isDead;
}

for (const scenario of SCENARIOS) {
  for (const past of [NONE_LOST, NINE_LOST]) {
    for (const moment of ['before', 'after'] as const) {
      const what = `${scenario.name}${past.name}`;
      test(`${what}: a worker killed ${moment} any of its calls leaves every claim to end exactly once`, async () => {
        let dieAt = 1;
        while (await run(scenario, past, `${what} ${moment} ${dieAt}`, dieAt, moment)) {
          assert.ok(++dieAt < MOST_CALLS);
        }
        assert.ok(
          dieAt > 5,
          `only ${dieAt - 1} calls were seen: lanes, take, config, commit and finish are five`,
        );
      });
    }
  }
}

test('negative control: a worker that does not ask the ledger kills the ticket of ten lost workers', async () => {
  await world.sell('unasked', ['ann']);
  const mortal = new Mortal(6, 'before');
  const step = world.bridge({ wrap: mortal.wrap }).step(new AbortController().signal);
  await Promise.race([step, mortal.died]);
  await loseWorkers(NINE_LOST.lost);
  const wrap: Wrap = (name, call) => (name === 'db2 tickets_of' ? async () => [] as never : call);
  await world.drain(world.bridge({ wrap }));
  await mortal.bury(step);
  assert.equal(mortal.diedAt, 'before call 6 (db1 bridge_finish)');
  assert.deepEqual(await world.ends('unasked'), {
    ann: 'dead_letter RESERVED, tickets 1, messages 0, letters 1',
  });
});

test('negative control: the checks see a worker that acknowledges what the ledger never got', async () => {
  await world.sell('hasty', ['ann'], {});
  const wrap: Wrap = (name, call) =>
    name === 'db2 finalize_batch' ? async () => HASTY_ANSWER as never : call;
  await world.bridge({ wrap }).step(new AbortController().signal);
  assert.notDeepEqual(await world.ends('hasty'), { ann: TICKET });
});
