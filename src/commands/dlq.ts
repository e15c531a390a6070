// `sluice dlq`: an operator looks at the dead letters, and sends them round again or throws them away.

import { parseArgs } from 'node:util';
import { isDone } from '#core/console/outcomes.ts';
import type { DeadLetter, DeadLetterResult } from '#core/dead_letters.ts';
import {
  createDeadLetterClient,
  type DeadLetterClient,
  type DeadLetterQuery,
} from '../admin/dead_letters.ts';
import type { Command } from './command.ts';
import { canAsk, confirm, readConnection } from './operator.ts';
import { formatTable } from './table.ts';
import { UsageError } from './usage_error.ts';

const usage = `sluice dlq list|show|replay|discard [ids] [options]

  list                 the dead letters, oldest first
  show <id> …          all that is known about some
  replay <id> …        send them round again: each claim gets a new decision
  discard <id> …       throw them away: their claims end, their slots go back on sale

A letter that answers ticket_conflict stays: the ledger has sold its slot to somebody else, and "sluice reconcile --fix"
has to put the slot right before it can be thrown away.

Without ids, replay and discard take what the filters find; at least one filter is needed then.

Filters:
  --pool ID            of this pool
  --reason TEXT        whose reason begins like this
  --older-than AGE     dead for longer than 30s, 10m, 2h or 7d
  --limit N            at most so many (default 100, at most 1000)

Options:
  --dry-run            say what would be done
  --yes                do not ask; needed where there is no terminal, unless a replay names its letters
  --reason-text TEXT   why, for the audit log
  --json               for machines

Environment:
  SLUICE_URL, SLUICE_ADMIN_KEY   the server and its key (default: those of the stack in .sluice)
  SLUICE_OPERATOR                who you are, for the audit log (default: $USER)

Exit code: 0 when all is done, 1 when some id was not, 2 when the call was not understood.

Examples:
  sluice dlq list --pool demo_concert_2026 --older-than 1h
  sluice dlq replay 17 18 --reason-text 'ledger is back'
  sluice dlq discard --reason malformed --dry-run
`;

const OPTIONS = {
  pool: { type: 'string' },
  reason: { type: 'string' },
  'older-than': { type: 'string' },
  limit: { type: 'string' },
  'dry-run': { type: 'boolean', default: false },
  yes: { type: 'boolean', default: false },
  'reason-text': { type: 'string' },
  json: { type: 'boolean', default: false },
} as const;

type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS; allowPositionals: true }>>['values'];
type Action = 'replay' | 'discard';

const SECONDS: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400 };
/** The server takes at most this many ids at a time. */
const MAX_LIMIT = 1_000;

async function run(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  const [action, ...rest] = positionals;
  const ids = rest.map(readId);
  const query = readQuery(values);
  if (action === 'list' && ids.length > 0) throw new UsageError('list takes filters, show takes ids');
  if (action === 'show' && ids.length === 0) throw new UsageError('show needs an id');
  if (action !== 'list' && action !== 'show' && action !== 'replay' && action !== 'discard')
    throw new UsageError(action === undefined ? 'say what to do' : `dlq cannot ${action}`);
  if ((action === 'replay' || action === 'discard') && ids.length === 0 && !isFiltered(values))
    throw new UsageError(`${action} needs ids or a filter`);
  const client = createDeadLetterClient(readConnection(process.env));
  if (action === 'list') return list(client, query, values);
  if (action === 'show') return show(client, ids, values);
  return act(client, action, ids, query, values);
}

async function list(client: DeadLetterClient, query: DeadLetterQuery, { json }: Values): Promise<number> {
  const messages = await client.list(query);
  if (json) console.log(JSON.stringify({ messages }));
  else console.log(messages.length === 0 ? 'No dead letters.' : tableOf(messages));
  return 0;
}

async function show(client: DeadLetterClient, ids: number[], { json }: Values): Promise<number> {
  const letters = await Promise.all(ids.map((id) => client.show(id)));
  for (const [index, letter] of letters.entries()) {
    if (letter !== undefined) console.log(JSON.stringify(letter, undefined, json ? undefined : 2));
    else console.error(`There is no dead letter ${ids[index]}.`);
  }
  return letters.includes(undefined) ? 1 : 0;
}

async function act(
  client: DeadLetterClient,
  action: Action,
  ids: number[],
  query: DeadLetterQuery,
  values: Values,
): Promise<number> {
  const found = ids.length > 0 ? ids : (await client.list(query)).map((letter) => letter.msg_id);
  if (found.length === 0) {
    console.log(values.json ? JSON.stringify({ results: [] }) : 'No dead letters.');
    return 0;
  }
  const isDryRun = values['dry-run'];
  // A replay can be undone by what it leads to, and whoever names its letters has said enough for a script.
  const isNamedReplay = action === 'replay' && ids.length > 0 && !canAsk();
  if (!isDryRun && !values.yes && !isNamedReplay) {
    const question = `${action} ${found.length} dead letter${found.length === 1 ? '' : 's'}?`;
    if (!(await confirm(question))) {
      console.error('Nothing was changed.');
      return 1;
    }
  }
  const results: DeadLetterResult[] = [];
  for (let at = 0; at < found.length; at += MAX_LIMIT) {
    results.push(
      ...(await client.act(action, {
        msg_ids: found.slice(at, at + MAX_LIMIT),
        dry_run: isDryRun,
        ...(values['reason-text'] && { reason: values['reason-text'] }),
      })),
    );
  }
  if (values.json) console.log(JSON.stringify({ results }));
  else
    console.log(
      formatTable(
        ['ID', 'OUTCOME'],
        results.map(({ msg_id, outcome }) => [String(msg_id), outcome]),
      ),
    );
  return results.every(isDone) ? 0 : 1;
}

function tableOf(letters: DeadLetter[]): string {
  return formatTable(
    ['ID', 'POOL', 'USER', 'REASON', 'DEAD SINCE', 'CLAIM'],
    letters.map((letter) => [
      String(letter.msg_id),
      letter.pool_id ?? '-',
      letter.user_id ?? '-',
      letter.reason,
      letter.dead_since.replace(/\.\d+/, ''),
      letter.claim_state ?? '-',
    ]),
  );
}

function readId(text: string): number {
  if (/^[1-9]\d{0,15}$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text);
  throw new UsageError(`"${text}" is not the id of a dead letter`);
}

function isFiltered(values: Values): boolean {
  return [values.pool, values.reason, values['older-than']].some((value) => value !== undefined);
}

function readQuery(values: Values): DeadLetterQuery {
  const query: DeadLetterQuery = {};
  if (values.pool !== undefined) query.pool_id = values.pool;
  if (values.reason !== undefined) query.reason = values.reason;
  if (values.limit !== undefined) {
    if (!/^[1-9]\d{0,3}$/.test(values.limit) || Number(values.limit) > MAX_LIMIT)
      throw new UsageError(`--limit is "${values.limit}"; it must be a number from 1 to ${MAX_LIMIT}`);
    query.limit = values.limit;
  }
  const age = values['older-than'];
  if (age !== undefined) {
    const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(age) ?? [];
    if (count === undefined || unit === undefined)
      throw new UsageError(`--older-than is "${age}"; say 30s, 10m, 2h or 7d`);
    query.older_than_sec = String(Number(count) * (SECONDS[unit] ?? 1));
  }
  return query;
}

export const dlq: Command = { summary: 'list, show, replay and discard dead letters', usage, run };
