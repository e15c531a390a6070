// Buyers of the hostile pools: the load that makes a neighbour's trouble felt. They come again until they are answered, and
// what they were told is judged like the rest.

import type { ClaimCall } from '../history.ts';
import { createRandom } from '../random.ts';
import { ask } from './ask.ts';
import type { Traffic } from './traffic.ts';

export const HOSTILE_POOLS = {
  commit: 'hostile-commit',
  checked: 'hostile-checked',
  locked: 'hostile-locked',
} as const;
export const HOSTILE_ENDPOINT = 'hostile';

const CLIENT = 'hostile';

/** So many claims, each of a buyer of its own, so many at a time; none is begun any more when the signal aborts. */
export async function claimAll(
  traffic: Traffic,
  poolId: string,
  name: string,
  count: number,
  atOnce: number,
  signal: AbortSignal,
): Promise<void> {
  let next = 0;
  const buyer = async (): Promise<void> => {
    while (next < count && !signal.aborted && !traffic.hasGivenUp)
      await claimOne(traffic, poolId, `${name}-${next++}`);
  };
  await Promise.all(Array.from({ length: atOnce }, buyer));
}

/** One request, asked for by so many clients at once. */
export async function claimAgain(
  traffic: Traffic,
  poolId: string,
  requestId: string,
  clients: number,
): Promise<void> {
  await Promise.all(Array.from({ length: clients }, () => claimOne(traffic, poolId, requestId)));
}

async function claimOne(traffic: Traffic, poolId: string, requestId: string): Promise<void> {
  const { ports, hostileAgent: agent } = traffic;
  const random = createRandom(0, requestId);
  const call: ClaimCall = {
    ...{ requestId, poolId, userId: `user ${requestId}`, startedAt: traffic.now(), endedAt: 0 },
    ...{ attempts: 0, answer: 'unknown', told: [] },
  };
  const body = JSON.stringify({ user_id: call.userId, request_id: requestId });
  const path = `/v1/pools/${poolId}/claims`;
  while (call.answer === 'unknown' && !traffic.hasGivenUp) {
    call.attempts++;
    const answer = await ask({ port: random.pick(ports), path, method: 'POST', body, agent });
    const code = answer?.json?.error?.code ?? '';
    traffic.count(answer === undefined ? 'hostile: no answer' : `hostile: ${answer.status} ${code}`.trim());
    if (answer?.status === 200 || answer?.status === 201) {
      call.answer = 'claimed';
      call.told.push({ claimId: answer.json.claim_id, slotId: answer.json.resource_id });
    } else if (answer?.status === 409) call.answer = code === 'sold_out' ? 'sold_out' : 'refused';
    else await traffic.beforeRetry(random);
  }
  call.endedAt = traffic.now();
  traffic.journal.write(CLIENT, 'claim', call);
}
