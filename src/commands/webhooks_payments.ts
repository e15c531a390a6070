// `sluice webhooks payments`: money that no event names a user for, and whose it is.

import {
  createUnnamedPaymentStore,
  MAX_PAYMENTS,
  type UnnamedPaymentStore,
} from '#core/webhook/unnamed_payments.ts';
import { StackError } from '../failure.ts';
import { withDb2 } from './db2.ts';
import { action, type Group } from './grammar.ts';
import { actor, OPTION } from './operator.ts';
import { formatTable, toTheSecond } from './table.ts';
import { readReason, readText } from './values.ts';

const MAX_USER_CHARS = 200;

const withPayments = <Result>(work: (store: UnnamedPaymentStore) => Promise<Result>): Promise<Result> =>
  withDb2((db2) => work(createUnnamedPaymentStore((name, args) => db2.call(`webhook.${name}`, args))));

const list = action({
  about: 'List payments that moved money while no event names their user: their credits wait',
  options: {
    limit: { range: [1, MAX_PAYMENTS], default: 100, about: 'at most this many' },
    json: OPTION.json,
  },
  examples: ['sluice webhooks payments list'],
  async run({ limit, json }) {
    const found = await withPayments((store) => store.list(limit));
    if (json) console.log(JSON.stringify({ payments: found }));
    else if (found.length === 0) console.log('Every payment has its user.');
    else {
      const rows = found.map((payment) => [
        payment.provider,
        payment.object_id,
        payment.state,
        String(payment.captured),
        String(payment.refunded),
        String(payment.disputed ?? 0),
        payment.currency,
        toTheSecond(payment.occurred_at),
      ]);
      const header = ['TENANT', 'PAYMENT', 'STATE', 'CAPTURED', 'REFUNDED', 'DISPUTED', 'CURRENCY', 'SINCE'];
      console.log(formatTable(header, rows));
    }
    return 0;
  },
});

const name = action({
  about: 'Name the user of a payment, and write its credits',
  args: '<payment> <user>',
  options: {
    tenant: { value: 'NAME', default: 'stripe', about: 'the tenant of the payment' },
    reason: OPTION.reason,
    json: OPTION.json,
  },
  examples: ["sluice webhooks payments name pi_3MtwBwLkdIwHu7ix ann --reason 'asked the buyer'"],
  async run({ tenant, reason, json }, [payment, user]) {
    const named = {
      tenant: readText('--tenant', tenant),
      payment: readText('a payment', payment),
      userId: readText('a user', user, MAX_USER_CHARS),
      actor: actor(),
      reason: readReason(reason),
    };
    if (!(await withPayments((store) => store.name(named))))
      throw new StackError(
        `no payment ${payment} of the tenant ${tenant} waits for its user`,
        '`sluice webhooks payments list` shows those that do',
      );
    console.log(
      json
        ? JSON.stringify({ named: true })
        : `The payment ${payment} is that of ${user}, who has its credits now.`,
    );
    return 0;
  },
});

export const payments: Group = {
  about: 'Payments without a user: list them, name the user',
  default: 'list',
  actions: { list, name },
};
