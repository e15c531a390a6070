// What the checkers of events, leases, operators and dead letters must reject: I7 to I12.

import type { History } from '../../chaos/history.ts';
import { type BadHistory, bad, pick } from './bad_history.ts';
import { event, stored } from './good_history.ts';

const PAID_THIRD = { object: 'pay3', state: 'succeeded' as const, amount: 5, refunded: 0 };

export const BAD_EVENTS: BadHistory[] = [
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
  bad('I7', 'an event that no provider sent', [], ({ final }) => {
    final.events.push(stored('row9', 'e9', 'success'));
  }),
  bad('I7', 'an effect of an event that no provider sent', ['I8'], ({ final }) => {
    final.credits.push({ provider: 'stripe', eventId: 'e9', userId: 'x', amount: 1, currency: 'eur' });
  }),
  bad('I7', 'a call that is there twice', [], ({ final }) => {
    final.calls.push({ siteId: 'site', signatureHash: 'aa' });
  }),
  bad('I7', 'a call that was answered as new twice', [], ({ callEvents }) => {
    callEvents[0] = { ...pick(callEvents), stored: 2 };
  }),
  bad('I7', 'a payment that went back from refunded to paid', [], ({ final }) => {
    final.payments[0] = { ...pick(final.payments), state: 'succeeded' };
  }),
  bad('I7', 'a payment that forgot its refund', [], ({ final }) => {
    final.payments[0] = { ...pick(final.payments), state: 'succeeded', refunded: 0 };
  }),
  bad('I7', 'a payment of another sum than was told', [], ({ final }) => {
    final.payments[0] = { ...pick(final.payments), amount: 11 };
  }),
  bad('I7', "a payment in another user's name", [], ({ final }) => {
    final.payments[0] = { ...pick(final.payments), userId: 'thief' };
  }),
  bad('I7', 'a payment that was told and is not there', [], ({ final }) => {
    final.payments = [];
  }),
  bad('I7', 'a payment that is there twice', [], ({ final }) => {
    final.payments.push(pick(final.payments));
  }),
  bad('I7', 'a payment of an event that took no effect', [], ({ final }) => {
    final.payments.push({ ...pick(final.payments), ...PAID_THIRD });
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
  bad('I9', 'an event that a worker ended after another had taken it over', [], ({ eventFinishes }) => {
    eventFinishes[0] = { ...pick(eventFinishes), result: 'success' };
    eventFinishes[1] = { ...pick(eventFinishes, 1), result: 'lost_lease' };
  }),
  bad('I9', 'an event that a worker ended in a try that was over', [], ({ eventFinishes, final }) => {
    final.events[0] = { ...pick(final.events), attempts: 2, takeovers: 0 };
    eventFinishes[1] = { ...pick(eventFinishes, 1), takeovers: 0 };
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
  bad('I11', 'an audit row of an action that no operator took', [], ({ final }) => {
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
  bad('I12', 'an event that was healthy, was dead-lettered and skipped by an operator', [], (history) => {
    history.events.push(event('e9', 'pay9', 'paid', 3));
    history.final.events.push({ ...stored('row9', 'e9', 'skipped'), skippedBy: 'operator' });
    actOnEvent(history, 'webhook_skip', 'skipped');
  }),
  bad('I12', 'an event that was healthy, was dead-lettered and replayed to success', [], (history) => {
    history.events.push(event('e9', 'pay1', 'paid', 10));
    history.final.events.push(stored('row9', 'e9', 'success'));
    actOnEvent(history, 'webhook_replay', 'replayed');
  }),
  bad('I12', 'an event that cannot succeed and did', ['I8'], ({ final }) => {
    final.events[3] = stored('row5', 'bad', 'success');
    final.payments.push({ ...pick(final.payments), ...PAID_THIRD });
    final.credits.push({ provider: 'stripe', eventId: 'bad', userId: 'payer', amount: 5, currency: 'eur' });
  }),
  bad('I12', 'a committed claim of a pool whose target refuses all', [], ({ pools }) => {
    pools[1] = { ...pick(pools, 1), neverCommits: true };
  }),
  bad('I12', 'a message that cannot succeed and vanished', [], ({ poison }) => {
    poison.push('p9');
  }),
];

/** What an operator is told who acts on row9 of the events, which the list of dead letters showed. */
function actOnEvent(history: History, action: string, result: string): void {
  const ids = ['row9'];
  history.operatorActions.push({
    ...{ action, ids, reason: 'chaos 3', at: 700, answer: 'done', results: [{ id: 'row9', result }] },
  });
  history.final.audit.push({ database: 'db2', action, actor: 'operator', reason: 'chaos 3', ids });
}
