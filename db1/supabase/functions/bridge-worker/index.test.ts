// Against a running stack: deno test --allow-net --allow-env, with the addresses of .sluice/env in the environment.

import { Webhook } from 'npm:standardwebhooks@1';
import {
  claim,
  db1,
  drain,
  drainUntilIdle,
  equal,
  invoke,
  makePool,
  need,
  ok,
  statusOf,
  ticketsOf,
} from '../_conformance/stack.ts';

const test = Deno.test;

test('the bridge worker answers idle when the queue is empty', async () => {
  await drainUntilIdle();
  equal(await drain(), { status: 200, body: { status: 'idle', processed: 0, dlq: 0, total: 0 } });
});

test('a claim becomes a ticket on DB2 and its slot is CONSUMED on DB1', async () => {
  await drainUntilIdle();
  const poolId = await makePool(1);
  const slotId = await claim(poolId, 'ann');
  equal(await statusOf(slotId), 'RESERVED');
  equal((await drain()).body, { status: 'ok', processed: 1, dlq: 0, total: 1 });
  equal(await ticketsOf(poolId), [{ resource_id: slotId, user_id: 'ann' }]);
  equal(await statusOf(slotId), 'CONSUMED');
});

test('the same message twice makes one ticket', async () => {
  await drainUntilIdle();
  const poolId = await makePool(1);
  const slotId = await claim(poolId, 'ann');
  const message = { pool_id: poolId, resource_id: slotId, user_id: 'ann', state: 'queued' };
  await ok(db1.rpc('intake_queue_send', { p_payload: message }));
  await drainUntilIdle();
  equal(await ticketsOf(poolId), [{ resource_id: slotId, user_id: 'ann' }]);
  equal(await statusOf(slotId), 'CONSUMED');
});

test('a message without attempts left goes to the dead letters and keeps its slot', async () => {
  await drainUntilIdle();
  const poolId = await makePool(1, { max_retries: 1 });
  const slotId = await claim(poolId, 'ann');
  equal((await drain()).body, { status: 'ok', processed: 0, dlq: 1, total: 1 });
  const { body } = await invoke(`admin-dlq?pool_id=${poolId}`);
  equal(
    body.messages.map((letter: { resource_id: string; reason: string }) => [
      letter.resource_id,
      letter.reason,
    ]),
    [[slotId, 'max_retries']],
  );
  equal(await ticketsOf(poolId), []);
  equal(await statusOf(slotId), 'RESERVED');
});

test('a pool with a commit hook is committed there, signed and with an idempotency key, and not on DB2', async () => {
  await drainUntilIdle();
  const webhook = new Webhook(need('SLUICE_HOOK_SECRET'));
  const seen: {
    key: string | null;
    claimId: string | null;
    type: string | null;
    body: Record<string, unknown>;
  }[] = [];
  const server = Deno.serve(
    { port: 0, hostname: '127.0.0.1', onListen: () => undefined },
    async (request) => {
      const { headers } = request;
      seen.push({
        key: headers.get('x-idempotency-key'),
        claimId: headers.get('x-claim-id'),
        type: headers.get('content-type'),
        // Throws, and so answers 500, where the signature is not ours.
        body: webhook.verify(await request.text(), Object.fromEntries(headers)) as Record<string, unknown>,
      });
      return new Response(null, { status: 204 });
    },
  );
  try {
    // The owner has allowed 127.0.0.1: sluice hosts allow 127.0.0.1
    const url = `http://127.0.0.1:${server.addr.port}/commit`;
    const poolId = await makePool(1, { commit_webhook_url: url });
    const slotId = await claim(poolId, 'ann');
    equal((await drain()).body, { status: 'ok', processed: 1, dlq: 0, total: 1 });
    equal(seen.length, 1);
    equal(seen[0]?.type, 'application/json');
    equal(seen[0]?.body.resource_id, slotId);
    equal(seen[0]?.key, slotId);
    equal(seen[0]?.claimId, seen[0]?.body.claim_id);
    equal(await statusOf(slotId), 'CONSUMED');
    equal(await ticketsOf(poolId), []);
  } finally {
    await server.shutdown();
  }
});
