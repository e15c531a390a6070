// What each checker must reject. `also`: the other promises that the same history breaks.

import type { History } from '../../chaos/history.ts';
import type { PromiseName } from '../../chaos/judge.ts';
import { claim, event, stored, told } from './good_history.ts';

export type BadHistory = {
  promise: PromiseName;
  name: string;
  also: PromiseName[];
  spoil(history: History): void;
};

const call = { startedAt: 100, endedAt: 200, attempts: 1 };

export const BAD_HISTORIES: BadHistory[] = [
  bad('I1', 'an acknowledged claim that is gone', [], ({ claims }) => {
    claims.push({
      ...call,
      requestId: 'r9',
      poolId: 'rpc',
      userId: 'u9',
      answer: 'claimed',
      told: [told('c9', 's3')],
    });
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
  bad('I1', 'a claim of a request that nobody made', [], ({ final }) => {
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
    claims.push({ ...call, requestId: 'r9', poolId: 'rpc', userId: 'u9', answer: 'unknown', told: [] });
    final.claims.push({ ...claim('c9', 'r9', 'rpc', 's1', 'u9'), state: 'committed' });
  }),
  bad('I2', 'a slot with two tickets', ['I3', 'I6'], ({ final }) => {
    final.tickets.push({ slotId: 's1', claimId: 'c9', poolId: 'rpc', userId: 'u9' });
  }),
  bad('I2', 'a slot that a target committed for a claim that was then released', ['I6'], (history) => {
    history.final.claims.push({
      ...claim('c9', 'r9', 'hook', 'h1', 'u9'),
      state: 'released',
      live: false,
    });
    history.claims.push({
      ...call,
      requestId: 'r9',
      poolId: 'hook',
      userId: 'u9',
      answer: 'unknown',
      told: [],
    });
    history.targetCalls.push({ kind: 'commit', key: 'c9', at: 1, status: 200, poolId: 'hook' });
  }),
  bad('I2', 'a slot that a target committed twice, for claims that ended well', [], (history) => {
    history.claims.push({
      ...call,
      requestId: 'r9',
      poolId: 'hook',
      userId: 'u9',
      answer: 'unknown',
      told: [],
    });
    history.final.claims.push({
      ...claim('c9', 'r9', 'hook', 'h1', 'u9'),
      state: 'released',
      live: false,
    });
    history.releases.push({ claimId: 'c9', at: 1, answer: 'released' });
    history.targetCalls.push({ kind: 'commit', key: 'c9', at: 1, status: 200, poolId: 'hook' });
  }),
  bad('I2', 'a slot promised to two buyers, of whom one has no claim', ['I1'], ({ claims }) => {
    claims.push({
      ...call,
      requestId: 'r9',
      poolId: 'rpc',
      userId: 'u9',
      answer: 'claimed',
      told: [told('c9', 's1')],
    });
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
  bad('I5', 'a slot that is reserved for nobody', [], ({ final }) => {
    final.slots[2] = { poolId: 'rpc', slotId: 's3', status: 'RESERVED' };
  }),
  bad('I5', 'a slot that is consumed by a dead letter', [], ({ final }) => {
    final.slots[5] = { poolId: 'hook', slotId: 'h2', status: 'CONSUMED' };
  }),
  bad('I5', 'a sold slot whose row is another', [], ({ final }) => {
    final.slots[0] = { poolId: 'rpc', slotId: 's9', status: 'AVAILABLE' };
  }),
  bad('I5', '"sold out" while slots were left', [], ({ claims }) => {
    claims.push({ ...call, requestId: 'r9', poolId: 'rpc', userId: 'u9', answer: 'sold_out', told: [] });
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
  bad('I6', 'a claim that was refused by nobody', [], ({ targetCalls }) => {
    targetCalls.pop();
  }),
  bad('I6', 'a claim that was discarded by nobody', [], (history) => {
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
  bad('I7', 'a fact that took effect twice', ['I8'], ({ final }) => {
    final.credits.push({ provider: 'stripe', eventId: 'e2', userId: 'payer', amount: 10, currency: 'eur' });
  }),
  bad('I7', 'a fact that was told and took no effect', ['I8'], ({ final }) => {
    final.credits.shift();
  }),
  bad('I7', "an effect in another user's name, of the same sum in all", ['I8'], ({ final }) => {
    final.credits[0] = { ...pick(final.credits), userId: 'thief' };
  }),
  bad('I7', 'an event that is there twice', [], ({ final }) => {
    final.events.push(stored('row9', 'e2', 'success'));
  }),
  bad('I7', 'an event that nobody sent', [], ({ final }) => {
    final.events.push(stored('row9', 'e9', 'success'));
  }),
  bad('I7', 'an effect of an event that nobody sent', ['I8'], ({ final }) => {
    final.credits.push({ provider: 'stripe', eventId: 'e9', userId: 'x', amount: 1, currency: 'eur' });
  }),
  bad('I7', 'a call that is there twice', [], ({ final }) => {
    final.calls.push({ siteId: 'site', signatureHash: 'aa' });
  }),
  bad('I7', 'a call that was answered as new twice', [], ({ callEvents }) => {
    callEvents[0] = { ...pick(callEvents), stored: 2 };
  }),
  bad('I8', 'an effect in another currency', [], ({ final }) => {
    final.credits[0] = { ...pick(final.credits), currency: 'usd' };
  }),
  bad('I9', 'a message that a worker ended after another had taken it over', [], ({ finishes }) => {
    finishes.push({ worker: 'w1', msgId: '7', claimId: 'c2', readCt: 1, outcome: 'committed', at: 5 });
    finishes.push({ worker: 'w2', msgId: '7', claimId: 'c2', readCt: 2, outcome: 'lost_lease', at: 6 });
  }),
  bad('I9', 'a message that two deliveries ended', [], ({ finishes }) => {
    finishes.push({ worker: 'w1', msgId: '1', claimId: 'c1', readCt: 1, outcome: 'committed', at: 5 });
  }),
  bad('I9', 'a claim that ended twice after its lease was lost', ['I6'], ({ final, lostLeases }) => {
    lostLeases.push({ worker: 'w1', kind: 'bridge', ids: ['c4'], at: 5 });
    final.deadLetters.push({ ...pick(final.deadLetters, 1), msgId: '93' });
  }),
  bad('I9', 'an event whose lease was lost and that is gone', [], ({ lostLeases }) => {
    lostLeases.push({ worker: 'w1', kind: 'webhook', ids: ['e4'], at: 5 });
  }),
  bad('I10', 'a run that did not drain in time', [], (history) => {
    history.drainedAt = null;
  }),
  bad('I10', 'a message that is left', [], ({ final }) => {
    final.queued.push({ msgId: '50', claimId: null, poolId: 'rpc', identity: 's2' });
  }),
  bad('I10', 'an event that still fails', [], ({ events, final }) => {
    events.push(event('e9', 'pay9', 'paid', 3));
    final.events.push(stored('row9', 'e9', 'failed'));
  }),
  bad('I11', 'an action without an audit row', [], ({ final }) => {
    final.audit.pop();
  }),
  bad('I11', 'an action with two audit rows', [], ({ final }) => {
    final.audit.push({ ...pick(final.audit, 1) });
  }),
  bad('I11', 'an audit row of an action that was answered as not done', [], ({ final }) => {
    final.audit.push({ ...pick(final.audit, 1), ids: ['99'] });
  }),
  bad('I11', 'two audit rows of an action without an answer', [], ({ final }) => {
    const row = {
      database: 'db2' as const,
      action: 'webhook_replay',
      actor: 'operator',
      reason: 'chaos 2',
      ids: ['row5'],
    };
    final.audit.push(row, row);
  }),
  bad('I11', 'an audit row of an action that nobody did', [], ({ final }) => {
    final.audit.push({ ...pick(final.audit, 1), reason: 'chaos 9' });
  }),
  bad('I12', 'a dead letter of a healthy message, replayed since', [], ({ final }) => {
    final.archivedLetters.push({
      msgId: '94',
      claimId: 'c1',
      poolId: 'rpc',
      identity: 'c1',
      reason: 'max_retries',
    });
  }),
  bad('I12', 'a dead letter whose target asked only for patience', [], ({ targetCalls }) => {
    targetCalls[2] = { ...pick(targetCalls, 2), status: 429 };
  }),
  bad('I12', 'an event that was healthy and is a dead letter', ['I8'], ({ events, final }) => {
    events.push(event('e9', 'pay9', 'paid', 3));
    final.events.push(stored('row9', 'e9', 'dead_letter'));
  }),
  bad('I12', 'an event that cannot succeed and did', ['I8'], ({ final }) => {
    final.events[3] = stored('row5', 'bad', 'success');
    final.credits.push({ provider: 'stripe', eventId: 'bad', userId: 'payer', amount: 5, currency: 'eur' });
  }),
  bad('I12', 'a committed claim of a pool whose target refuses all', [], ({ pools }) => {
    pools[1] = { ...pick(pools, 1), neverCommits: true };
  }),
  bad('I12', 'a message that cannot succeed and vanished', [], ({ poison }) => {
    poison.push('p9');
  }),
];

function bad(
  promise: PromiseName,
  name: string,
  also: PromiseName[],
  spoil: (history: History) => void,
): BadHistory {
  return { promise, name, also, spoil };
}

function pick<Item>(items: Item[], at = 0): Item {
  const item = items[at];
  if (item === undefined) throw new Error(`the good history has no item ${at} here`);
  return item;
}

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
