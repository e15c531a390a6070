// What the checkers of claims, slots and tickets must reject: I1 to I6.

import type { ClaimCall, History } from '../../chaos/history.ts';
import { type BadHistory, bad, pick } from './bad_history.ts';
import { claim, event, told } from './good_history.ts';

const call = { startedAt: 100, endedAt: 200, attempts: 1 };
/** A ninth buyer, whom the good history does not have. */
const ninth = (poolId: string, answer: ClaimCall['answer'], ...told: ClaimCall['told']): ClaimCall => ({
  ...{ ...call, requestId: 'r9', poolId, userId: 'u9', answer, told },
});

export const BAD_CLAIMS: BadHistory[] = [
  bad('I1', 'an acknowledged claim that is gone', [], ({ claims }) => {
    claims.push(ninth('rpc', 'claimed', told('c9', 's3')));
  }),
  bad('I1', 'a retry that was told another slot', [], ({ claims }) => {
    claims[0]?.told.push(told('c9', 's3'));
  }),
  bad('I1', 'a retry that was told "sold out" after a slot', [], (history) => {
    // The third of pool small: its two slots were asked for by two others.
    history.claims[5] = { ...pick(history.claims, 5), answer: 'sold_out' };
  }),
  bad('I1', 'a claim with another slot than its buyer was told', [], (history) => {
    history.claims[0] = { ...pick(history.claims), told: [told('c1', 's3')] };
  }),
  bad('I1', "a claim that is another user's", [], (history) => {
    history.claims[0] = { ...pick(history.claims), userId: 'u9' };
  }),
  bad('I1', 'a request with two claims', [], ({ final }) => {
    sell(final, 'c9', 'r1', 's3', 'u1');
  }),
  bad('I1', 'a claim of a request that no buyer made', [], ({ final }) => {
    sell(final, 'c9', 'r99', 's3', 'u9');
  }),
  bad('I1', 'a claim that no request and no replay made', [], ({ final }) => {
    sell(final, 'c9', null, 's3', 'u9');
  }),
  bad('I1', 'an acknowledged event that is gone', ['I8'], ({ events }) => {
    events.push(event('e9', 'pay9', 'paid', 3));
  }),
  bad('I1', 'an acknowledged call that is gone', [], ({ final }) => {
    final.calls = [];
  }),
  bad('I2', 'a slot with two live claims', ['I3', 'I6'], ({ claims, final }) => {
    claims.push(ninth('rpc', 'unknown'));
    final.claims.push({ ...claim('c9', 'r9', 'rpc', 's1', 'u9'), state: 'committed' });
  }),
  bad('I2', 'a slot with two tickets', ['I3', 'I6'], ({ final }) => {
    final.tickets.push({ slotId: 's1', claimId: 'c9', poolId: 'rpc', userId: 'u9' });
  }),
  bad('I2', 'a slot that a target committed for a claim that was then released', ['I3', 'I6'], (history) => {
    history.final.claims.push({
      ...claim('c9', 'r9', 'hook', 'h1', 'u9'),
      state: 'released',
      live: false,
    });
    history.claims.push(ninth('hook', 'unknown'));
    history.targetCalls.push({ kind: 'commit', key: 'c9', at: 1, status: 200, poolId: 'hook' });
  }),
  bad('I2', 'a slot that a target committed twice, for claims that ended well', ['I3'], (history) => {
    history.claims.push(ninth('hook', 'unknown'));
    history.final.claims.push({
      ...claim('c9', 'r9', 'hook', 'h1', 'u9'),
      state: 'released',
      live: false,
    });
    history.releases.push({ claimId: 'c9', at: 1, answer: 'released' });
    history.targetCalls.push({ kind: 'commit', key: 'c9', at: 1, status: 200, poolId: 'hook' });
  }),
  bad('I2', 'a slot of a ticket that a dead letter holds too', [], (history) => {
    const { pools, claims, targetCalls, final } = history;
    pools[1] = { ...pick(pools, 1), capacity: 3 };
    final.slots.push({ poolId: 'hook', slotId: 'h3', status: 'AVAILABLE' });
    claims.push(ninth('hook', 'unknown'));
    final.claims.push({ ...claim('c9', 'r9', 'hook', 'h1', 'u9'), state: 'dead_letter' });
    final.deadLetters.push({ ...pick(final.deadLetters, 1), msgId: '93', claimId: 'c9', identity: 'c9' });
    targetCalls.push({ kind: 'commit', key: 'c9', at: 1, status: 422, poolId: 'hook' });
  }),
  bad('I2', 'a slot promised to two buyers, of whom one has no claim', ['I1'], ({ claims }) => {
    claims.push(ninth('rpc', 'claimed', told('c9', 's1')));
  }),
  bad('I3', 'a ticket of another user than the claim', [], ({ final }) => {
    final.tickets[0] = { ...pick(final.tickets), userId: 'u9' };
  }),
  bad('I3', 'a ticket of a claim that waits in the dead letters', ['I6'], ({ final }) => {
    final.tickets.push({ slotId: 'h2', claimId: 'c4', poolId: 'hook', userId: 'u4' });
    // Of a pool that commits by webhook the ledger knows nothing: the end is counted by DB1 alone.
    final.deadLetters.pop();
  }),
  bad('I3', 'a committed claim without a ticket', ['I6'], ({ final }) => {
    final.tickets.pop();
  }),
  bad('I3', 'a committed claim whose target never said yes', ['I6'], ({ targetCalls }) => {
    targetCalls.splice(1, 1);
  }),
  bad('I3', 'a claim that its target has committed and that was released', [], (history) => {
    const { releases, final } = history;
    final.claims[2] = { ...pick(final.claims, 2), state: 'released', live: false };
    releases.push({ claimId: 'c3', at: 300, answer: 'released' });
    setStatus(final, 'h1', 'AVAILABLE');
  }),
  bad('I3', 'a claim that its target has committed and that expired', [], ({ pools, final }) => {
    pools[1] = { ...pick(pools, 1), holdSec: 5 };
    final.claims[2] = { ...pick(final.claims, 2), state: 'expired', live: false };
    setStatus(final, 'h1', 'AVAILABLE');
  }),
  bad('I3', 'a claim that its target has committed and that was refused', [], ({ targetCalls, final }) => {
    final.claims[2] = { ...pick(final.claims, 2), state: 'refused', live: false };
    targetCalls.push({ kind: 'validate', key: 'c3', at: 290, status: 422, poolId: 'hook' });
    setStatus(final, 'h1', 'AVAILABLE');
  }),
  bad('I4', 'more live claims than slots', ['I5'], ({ pools }) => {
    pools[0] = { ...pick(pools), capacity: 1 };
  }),
  bad('I4', 'more tickets than slots, each of a claim', [], ({ pools, claims, final }) => {
    pools.push({ poolId: 'none', capacity: 0, commit: 'rpc' });
    final.tickets[0] = { ...pick(final.tickets), poolId: 'none' };
    final.claims[0] = { ...pick(final.claims), poolId: 'none' };
    claims[0] = { ...pick(claims), poolId: 'none' };
  }),
  bad('I5', 'a slot that vanished', [], ({ final }) => {
    final.slots = final.slots.filter((slot) => slot.slotId !== 's3');
  }),
  bad('I5', 'a slot out of nowhere', [], ({ final }) => {
    final.slots.push({ poolId: 'rpc', slotId: 's9', status: 'AVAILABLE' });
  }),
  bad('I5', 'a sold slot that is for sale again', [], ({ final }) => {
    final.slots[0] = { poolId: 'rpc', slotId: 's1', status: 'AVAILABLE' };
  }),
  bad('I5', 'a slot that is reserved without a claim', [], ({ final }) => {
    final.slots[2] = { poolId: 'rpc', slotId: 's3', status: 'RESERVED' };
  }),
  bad('I5', 'a slot that is consumed by a dead letter', [], ({ final }) => {
    final.slots[5] = { poolId: 'hook', slotId: 'h2', status: 'CONSUMED' };
  }),
  bad('I5', 'a sold slot whose row is another', [], ({ final }) => {
    final.slots[0] = { poolId: 'rpc', slotId: 's9', status: 'AVAILABLE' };
  }),
  bad('I5', '"sold out" while slots were left', [], ({ claims }) => {
    claims.push(ninth('rpc', 'sold_out'));
  }),
  bad('I6', 'a claim that is on its way without a message', ['I10'], (history) => {
    ask(history, 'c9', 's3', 'queued', 'RESERVED');
  }),
  bad(
    'I6',
    'a claim whose ticket is there, whose message is gone and that is not committed',
    ['I3', 'I10'],
    (history) => {
      history.final.claims[0] = { ...pick(history.final.claims), state: 'queued' };
      setStatus(history.final, 's1', 'RESERVED');
    },
  ),
  bad('I6', 'a claim that was released without anybody asking', [], ({ releases }) => {
    releases.pop();
  }),
  bad('I6', 'a claim that was told released and is a ticket', [], ({ releases }) => {
    releases.push({ claimId: 'c1', at: 1, answer: 'released' });
  }),
  bad('I6', 'a claim that expired in a pool without holds', [], ({ pools }) => {
    pools[2] = { poolId: 'small', capacity: 2, commit: 'rpc' };
  }),
  bad('I6', 'a claim that no hook refused', [], ({ targetCalls }) => {
    targetCalls.pop();
  }),
  bad('I6', 'a claim that no operator discarded', [], (history) => {
    ask(history, 'c9', 's3', 'discarded', 'AVAILABLE');
  }),
  bad('I6', 'a claim with two dead letters', [], ({ final }) => {
    final.deadLetters.push({ ...pick(final.deadLetters, 1), msgId: '93' });
  }),
  bad('I6', 'a dead letter of a claim that is a ticket', ['I9', 'I12'], ({ final }) => {
    final.deadLetters.push({ msgId: '93', claimId: 'c1', poolId: 'rpc', identity: 'c1', reason: 'retries' });
  }),
  bad('I6', 'a ticket that is the end of no claim', ['I3'], ({ final }) => {
    final.tickets.push({ slotId: 's3', claimId: 'c9', poolId: 'rpc', userId: 'u9' });
  }),
  bad('I6', 'a claim that is on the queue twice', ['I10'], (history) => {
    ask(history, 'c9', 's3', 'queued', 'RESERVED');
    const message = { claimId: 'c9', poolId: 'rpc', identity: 'c9' };
    history.final.queued.push({ ...message, msgId: '50' }, { ...message, msgId: '51' });
  }),
  bad('I6', 'a message about a claim that has ended', ['I10'], ({ final }) => {
    final.queued.push({ msgId: '50', claimId: 'c2', poolId: 'rpc', identity: 'c2' });
  }),
  bad('I6', 'a message about a claim that is not there', ['I10'], ({ final }) => {
    final.queued.push({ msgId: '50', claimId: 'c9', poolId: 'rpc', identity: 'c9' });
  }),
];

/** A claim with everything a ticket needs, on a slot that is free in the good history. */
function sell(
  final: History['final'],
  claimId: string,
  requestId: string | null,
  slotId: string,
  userId: string,
): void {
  final.claims.push({ ...claim(claimId, requestId, 'rpc', slotId, userId), state: 'committed' });
  final.tickets.push({ slotId, claimId, poolId: 'rpc', userId });
  setStatus(final, slotId, 'CONSUMED');
}

/** A claim in this state, of a request that never got an answer. */
function ask(
  history: History,
  claimId: string,
  slotId: string,
  state: string,
  status: 'AVAILABLE' | 'RESERVED',
): void {
  history.claims.push({
    ...call,
    requestId: `request of ${claimId}`,
    poolId: 'rpc',
    userId: 'u9',
    answer: 'unknown',
    told: [],
  });
  const live = status === 'RESERVED';
  history.final.claims.push({
    ...claim(claimId, `request of ${claimId}`, 'rpc', slotId, 'u9'),
    state,
    live,
  });
  setStatus(history.final, slotId, status);
}

function setStatus(
  final: History['final'],
  slotId: string,
  status: 'AVAILABLE' | 'RESERVED' | 'CONSUMED',
): void {
  const slot = final.slots.find((one) => one.slotId === slotId);
  if (slot === undefined) throw new Error(`the good history has no slot ${slotId}`);
  slot.status = status;
}
