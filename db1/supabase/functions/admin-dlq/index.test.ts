// Against a running stack: deno test --allow-net --allow-env, with the addresses of .sluice/env in the environment.

import {
  allowRetries,
  drainUntilIdle,
  equal,
  invoke,
  makeDeadLetter,
  statusOf,
  ticketsOf,
} from '../_conformance/stack.ts';

const test = Deno.test;

const post = (action: 'replay' | 'discard', body: unknown) =>
  invoke(`admin-dlq/${action}`, { method: 'POST', body: JSON.stringify(body) });

async function listed(poolId: string): Promise<number[]> {
  const { body } = await invoke(`admin-dlq?pool_id=${poolId}`);
  return body.messages.map((letter: { msg_id: number }) => letter.msg_id);
}

test('a listing shows the dead letters of the pool and hides nothing from the next', async () => {
  const { poolId, slotId, msgId } = await makeDeadLetter();
  const { status, body } = await invoke(`admin-dlq?pool_id=${poolId}`);
  equal(status, 200);
  const [letter] = body.messages;
  equal(letter.pool_id, poolId);
  equal(letter.resource_id, slotId);
  equal(letter.reason, 'max_retries');
  equal(await listed(poolId), [msgId]);
  equal(await invoke(`admin-dlq/${msgId}`), { status: 200, body: letter });
});

test('a replayed letter goes back to the queue and becomes a ticket once its cause is gone', async () => {
  const { poolId, slotId, msgId } = await makeDeadLetter();
  await allowRetries(poolId);
  equal((await post('replay', { msg_ids: [msgId] })).body, {
    results: [{ msg_id: msgId, outcome: 'replayed' }],
  });
  equal(await listed(poolId), []);
  await drainUntilIdle();
  equal(await ticketsOf(poolId), [{ resource_id: slotId, user_id: 'ann' }]);
  equal(await statusOf(slotId), 'CONSUMED');
  equal((await post('replay', { msg_ids: [msgId] })).body, {
    results: [{ msg_id: msgId, outcome: 'not_found' }],
  });
});

test('a discarded letter is gone for good and its slot is on sale again', async () => {
  const { poolId, slotId, msgId } = await makeDeadLetter();
  const { body } = await post('discard', { msg_ids: [msgId], reason: 'asked to' });
  equal(
    body.results.map(({ msg_id, outcome }: { msg_id: number; outcome: string }) => [msg_id, outcome]),
    [[msgId, 'discarded']],
  );
  equal(await listed(poolId), []);
  await drainUntilIdle();
  equal(await ticketsOf(poolId), []);
  equal(await statusOf(slotId), 'AVAILABLE');
});

test('a dry run says what would be done and changes nothing', async () => {
  const { poolId, msgId } = await makeDeadLetter();
  const unknown = Number.MAX_SAFE_INTEGER;
  equal((await post('replay', { msg_ids: [msgId, unknown], dry_run: true })).body.results, [
    { msg_id: msgId, outcome: 'would_replay' },
    { msg_id: unknown, outcome: 'not_found' },
  ]);
  equal(await listed(poolId), [msgId]);
});
