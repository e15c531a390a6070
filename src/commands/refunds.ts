// `sluice refunds`: money that is owed, and what becomes of it.

import { REFUND_STATES, type RefundRow } from '#core/console/order_shapes.ts';
import { isDone } from '#core/console/outcomes.ts';
import type { RefundAct, RefundResult } from '#core/console/refunds.ts';
import { moneyOf } from '#core/money.ts';
import { AdminClient, type Page } from '../admin/client.ts';
import { factsTable, showEach } from './claim_tables.ts';
import { action, type Group, UsageError, type Values } from './grammar.ts';
import { confirm, OPTION, readConnection, showAction, VARIABLES } from './operator.ts';
import { formatTable, toTheSecond } from './table.ts';
import { readReason, readText } from './values.ts';

const MAX_ID_CHARS = 200;

const connect = (): AdminClient => new AdminClient(readConnection(process.env));

const LIST_OPTIONS = {
  state: { value: 'STATE', choices: REFUND_STATES, about: REFUND_STATES.join(', ') },
  limit: { range: [1, 1_000], default: 100, about: 'at most this many' },
  after: { value: 'ID', about: 'those after this refund: "next" of the page before' },
  json: OPTION.json,
} as const;

async function list(values: Values<typeof LIST_OPTIONS>): Promise<number> {
  const query: Record<string, string> = { limit: String(values.limit) };
  if (values.state !== undefined) query.state = values.state;
  if (values.after !== undefined) query.after = values.after;
  const page = await connect().get<Page<RefundRow>>('/admin/refunds', query);
  if (values.json) {
    console.log(JSON.stringify(page));
    return 0;
  }
  const rows = page.items.map((refund) => [
    refund.id,
    refund.state,
    moneyOf(refund.amount, refund.currency),
    refund.error === null ? refund.reason : `${refund.reason} (${refund.error})`,
    refund.payment_key,
    toTheSecond(refund.created_at),
  ]);
  const header = ['REFUND', 'STATE', 'AMOUNT', 'WHY', 'PAYMENT', 'OWED SINCE'];
  console.log(rows.length === 0 ? 'No such refunds.' : formatTable(header, rows));
  if (page.next !== null) console.error(`There may be more: --after ${page.next}`);
  return 0;
}

const show = (ids: readonly string[], json: boolean): Promise<number> =>
  showEach<RefundRow>(connect, ids, json, {
    pathOf: (id) => `/admin/refunds/${encodeURIComponent(readId(id))}`,
    describe: (refund) => factsTable('REFUND', refund, 'id'),
    unknown: (id) => `The refund ${id} does not exist.`,
  });

const ACT_OPTIONS = {
  'dry-run': { about: 'say what would be done' },
  yes: OPTION.yes,
  reason: OPTION.reason,
  json: OPTION.json,
};

async function act(
  word: RefundAct,
  { 'dry-run': isDryRun, yes, reason, json }: Values<typeof ACT_OPTIONS>,
  given: readonly string[],
): Promise<number> {
  const ids = [...new Set(given.map(readId))];
  const why = readReason(reason);
  const api = connect();
  const ask = async (dry_run: boolean): Promise<RefundResult[]> => {
    const body = { ids, dry_run, ...(why !== null && { reason: why }) };
    return (await api.post<{ results: RefundResult[] }>(`/admin/refunds/${word}`, body)).results;
  };
  const plan = await ask(true);
  const wanted = plan.filter(isDone).length;
  if (isDryRun || wanted === 0) return report(plan, json);
  if (!yes) {
    console.error(tableOf(plan));
    const what = wanted === 1 ? 'this refund' : `${wanted} refunds`;
    const means = word === 'send' ? 'The money goes back' : 'The money stays';
    if (!(await confirm(`${word === 'send' ? 'Send' : 'Skip'} ${what}? ${means}.`))) {
      console.error('Nothing was changed.');
      return 1;
    }
  }
  return report(await ask(false), json);
}

function report(results: readonly RefundResult[], asJson: boolean): number {
  console.log(asJson ? JSON.stringify({ results }) : tableOf(results));
  return results.every(isDone) ? 0 : 1;
}

const tableOf = (results: readonly RefundResult[]): string =>
  formatTable(
    ['REFUND', 'OUTCOME'],
    results.map(({ id, outcome }) => [id, outcome]),
  );

function readId(text: string): string {
  if (/[\p{Cc}]/u.test(text)) throw new UsageError('the id of a refund has no control characters');
  return readText('the id of a refund', text, MAX_ID_CHARS);
}

export const command: Group = {
  about: 'See which refunds are owed, and send or skip those that wait for an operator',
  environment: { ...VARIABLES.server, ...VARIABLES.operator },
  exits: ['when all is done', 'when some refund was not'],
  actions: {
    list: action({
      about: 'List refunds, newest first',
      options: LIST_OPTIONS,
      examples: ['sluice refunds list --state review'],
      run: list,
    }),
    show: showAction(
      'Show all that is known about some',
      '<id> …',
      'sluice refunds show settle:stripe/pi_3MtwBwLkdIwHu7ix',
      show,
    ),
    send: action({
      about: `Let the refunder send refunds that wait for an operator, or that Stripe refused

Shows what it would do, and asks. Each refund is sent once, however often you ask.`,
      args: '<id> …',
      options: ACT_OPTIONS,
      examples: ["sluice refunds send settle:stripe/pi_3MtwBwLkdIwHu7ix --reason 'asked the buyer'"],
      run: (values, ids) => act('send', values, ids),
    }),
    skip: action({
      about: `Close refunds without sending them: they were paid back in another way, or are not owed

Shows what it would do and asks.`,
      args: '<id> …',
      options: ACT_OPTIONS,
      examples: [
        "sluice refunds skip settle:stripe/pi_3MtwBwLkdIwHu7ix --reason 'refunded in the dashboard'",
      ],
      run: (values, ids) => act('skip', values, ids),
    }),
  },
};
