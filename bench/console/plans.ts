// The statements behind what the console asks for, and their plans.

import pg from 'pg';

export interface Statement {
  readonly side: 'db1' | 'db2';
  readonly text: string;
  readonly values: readonly string[];
}

/** The functions of each list, by its name in the address: what reads a page, and what counts. */
const LISTS: Readonly<Record<string, readonly [side: Statement['side'], list: string, total: string]>> = {
  claims: ['db1', 'public.claim_search', 'public.claim_total'],
  tickets: ['db2', 'public.ticket_list', 'public.ticket_total'],
  payments: ['db2', 'public.payment_list', 'public.payment_total'],
  credits: ['db2', 'public.credit_list', 'public.credit_total'],
  'webhooks/events': ['db2', 'webhook.list_events', 'public.event_total'],
};
/** The one that lists the oldest first unless it is told. */
const NEWEST_FIRST = 'webhook.list_events';
/** As many as the server asks for at once, of a search and of an export. */
const FOUND = 9;
const EXPORTED = 1_000;

/** What the server sends to the databases for a path of the admin API. */
export function statementsOf(path: string): readonly Statement[] {
  const { pathname, searchParams } = new URL(path, 'http://server');
  const { q, page, limit, format: _, ...filters } = Object.fromEntries(searchParams);
  if (q !== undefined)
    return [
      call('db1', 'public.search_intake', { p_q: q, p_limit: String(FOUND) }),
      call('db2', 'public.search_ledger', { p_q: q, p_limit: String(FOUND) }),
    ];
  const [, what, name = ''] = /^\/admin\/(?:(totals|export)\/)?(.+)$/.exec(pathname) ?? [];
  const known = LISTS[name];
  if (known === undefined) throw new Error(`${path} is not a list`);
  const [side, list, total] = known;
  const args = Object.fromEntries(Object.entries(filters).map(([filter, value]) => [`p_${filter}`, value]));
  if (list === NEWEST_FIRST) args.p_newest_first = 'true';
  if (what === 'totals') return [call(side, total, args)];
  const p_limit = what === 'export' ? String(EXPORTED) : (limit ?? '');
  const p_offset = String((Number(page ?? 1) - 1) * Number(p_limit));
  return [call(side, list, { ...args, p_limit, ...(page !== undefined && { p_offset }) })];
}

function call(side: Statement['side'], name: string, args: Readonly<Record<string, string>>): Statement {
  const named = Object.keys(args).map((arg, index) => `${arg} => $${index + 1}`);
  return { side, text: `select * from ${name}(${named.join(', ')})`, values: Object.values(args) };
}

/** The scans of all statements inside the function, as auto_explain tells them; where the server has none, why. */
export async function planOf(url: string, { text, values }: Statement): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const notices: string[] = [];
  client.on('notice', ({ message }) => message?.includes('Query Text') && notices.push(message));
  try {
    await client.query(`load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_nested_statements = on;
      set auto_explain.log_analyze = on; set auto_explain.log_timing = off; set client_min_messages = log`);
    await client.query(text, [...values]);
    return scansIn(notices).join('\n');
  } catch (error) {
    return `  (${error instanceof Error ? error.message : String(error)})`;
  } finally {
    await client.end();
  }
}

/** One line for each scan. */
function scansIn(notices: readonly string[]): string[] {
  return notices
    .flatMap((notice) => notice.split('\n'))
    .filter((line) => /\bScan\b/.test(line))
    .map((line) => `  ${line.trim().replace(/^-> +/, '')}`);
}
