// `sluice claims`: find a buyer's claim, see how far it came, give its slot back.

import { parseArgs } from 'node:util';
import type { ClaimRecord } from '#core/claim.ts';
import type { TimelineEvent } from '#core/console/claims.ts';
import { AdminClient, ApiError, type Page } from '../admin/client.ts';
import type { Command } from './command.ts';
import { confirm, readConnection } from './operator.ts';
import { formatTable } from './table.ts';
import { UsageError } from './usage_error.ts';

const usage = `sluice claims find|show|release [claim ids] [options]

  find               claims that match all of the filters; at least one is needed
  show <id> …        claims and their way, from the door to the ledger
  release <id> …     give their slots back, which the audit log keeps; a ticket cannot be given back

Filters of find:
  --user ID          of this user
  --claim ID         with this id
  --request ID       made with this request id
  --pool ID          of this pool
  --state STATE      queued, validated, committed, dead_letter, released, expired, refused or discarded
  --limit N          at most so many (default 100, at most 1000)
  --after ID         those after this claim: "next" of the page before

Options:
  --yes              release without asking; needed where there is no terminal
  --reason TEXT      why, for the audit log
  --json             for machines

Environment:
  SLUICE_URL, SLUICE_ADMIN_KEY   the server and its key (default: those of the stack in .sluice)
  SLUICE_OPERATOR                who you are (default: $USER)

Exit code: 0 when all is done, 1 when some claim was not there or could not be released, 2 when the call was not understood.

Examples:
  sluice claims find --user ann --pool opening_night
  sluice claims show 0198c0de-0000-7000-8000-000000000001
  sluice claims release 0198c0de-0000-7000-8000-000000000001 --reason 'asked by phone'
  sluice claims find --state dead_letter --json | jq -r '.items[].claim_id'
`;

const OPTIONS = {
  user: { type: 'string' },
  claim: { type: 'string' },
  request: { type: 'string' },
  pool: { type: 'string' },
  state: { type: 'string' },
  limit: { type: 'string' },
  after: { type: 'string' },
  yes: { type: 'boolean', default: false },
  reason: { type: 'string' },
  json: { type: 'boolean', default: false },
} as const;

type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS; allowPositionals: true }>>['values'];

const FILTERS = {
  user: 'user_id',
  claim: 'claim_id',
  request: 'request_id',
  pool: 'pool_id',
  state: 'state',
} as const;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

async function run(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  const [action, ...ids] = positionals;
  if (action !== 'find' && action !== 'show' && action !== 'release')
    throw new UsageError(action === undefined ? 'say what to do' : `claims cannot ${action}`);
  if (action === 'find' && ids.length > 0) throw new UsageError('find takes filters, show takes ids');
  if (action !== 'find' && ids.length === 0) throw new UsageError(`${action} needs a claim id`);
  for (const id of ids) if (!UUID.test(id)) throw new UsageError(`"${id}" is not the id of a claim`);
  const query = action === 'find' ? readQuery(values) : {};
  const api = new AdminClient(readConnection(process.env));
  if (action === 'find') return find(api, query, values);
  return action === 'show' ? show(api, ids, values) : release(api, ids, values);
}

function readQuery(values: Values): Record<string, string> {
  const query: Record<string, string> = {};
  for (const [option, field] of Object.entries(FILTERS)) {
    const value = values[option as keyof typeof FILTERS];
    if (value !== undefined) query[field] = value;
  }
  if (Object.keys(query).length === 0) throw new UsageError('find needs a filter');
  if (values.after !== undefined) query.after = values.after;
  if (values.limit !== undefined) query.limit = values.limit;
  return query;
}

async function find(api: AdminClient, query: Record<string, string>, { json }: Values): Promise<number> {
  const page = await api.get<Page<ClaimRecord>>('/admin/claims', query);
  if (json) {
    console.log(JSON.stringify(page));
    return 0;
  }
  const rows = page.items.map(({ claim_id, pool_id, user_id, state, claimed_at, end_reason }) => [
    claim_id,
    pool_id,
    user_id,
    state,
    seconds(claimed_at),
    end_reason ?? '-',
  ]);
  const header = ['CLAIM', 'POOL', 'USER', 'STATE', 'CLAIMED', 'END'];
  console.log(rows.length === 0 ? 'No such claims.' : formatTable(header, rows));
  if (page.next !== null) console.error(`There may be more: --after ${page.next}`);
  return 0;
}

async function show(api: AdminClient, ids: string[], { json }: Values): Promise<number> {
  let missing = 0;
  for (const id of ids) {
    const found = await orUnknown(
      api.get<{ claim: ClaimRecord; timeline: TimelineEvent[] }>(`/admin/claims/${id}`),
    );
    if (found === undefined) {
      console.error(`There is no claim ${id}.`);
      missing += 1;
    } else if (json) console.log(JSON.stringify(found));
    else console.log(`${claimTable(found.claim)}\n\n${timelineTable(found.timeline)}\n`);
  }
  return missing > 0 ? 1 : 0;
}

async function release(api: AdminClient, ids: string[], { yes, reason, json }: Values): Promise<number> {
  if (!yes && !(await confirm(`Release ${ids.length === 1 ? ids[0] : `${ids.length} claims`}?`))) {
    console.error('Nothing was changed.');
    return 1;
  }
  const results: { claim_id: string; outcome: string }[] = [];
  for (const claim_id of ids) results.push({ claim_id, outcome: await releaseOne(api, claim_id, reason) });
  if (json) console.log(JSON.stringify({ results }));
  else
    console.log(
      formatTable(
        ['CLAIM', 'OUTCOME'],
        results.map(({ claim_id, outcome }) => [claim_id, outcome]),
      ),
    );
  return results.every(({ outcome }) => outcome === 'released') ? 0 : 1;
}

/** Its state afterwards, or the code of the refusal. */
async function releaseOne(api: AdminClient, id: string, reason?: string): Promise<string> {
  try {
    return (await api.post<ClaimRecord>(`/admin/claims/${id}/release`, { reason })).state;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 404 || error.status === 409)) return error.code;
    throw error;
  }
}

async function orUnknown<Answer>(asked: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

function claimTable(claim: ClaimRecord): string {
  return formatTable(
    ['CLAIM', claim.claim_id],
    Object.entries(claim)
      .filter(([name]) => name !== 'claim_id')
      .map(([name, value]) => [name, value === null ? '-' : String(value)]),
  );
}

function timelineTable(timeline: TimelineEvent[]): string {
  const known = (detail: TimelineEvent['detail']) =>
    Object.entries(detail)
      .filter(([, value]) => value !== null && value !== undefined)
      .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
      .join(' ');
  return formatTable(
    ['AT', 'WHAT', 'DETAIL'],
    timeline.map(({ at, what, detail }) => [at === null ? '?' : seconds(at), what, known(detail)]),
  );
}

function seconds(time: string): string {
  return time.replace(/\.\d+/, '');
}

export const claims: Command = { summary: 'find, show and release claims', usage, run };
