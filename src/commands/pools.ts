// `sluice pools`: what is on sale, under which rules, and changes to both.

import { parseArgs } from 'node:util';
import type { PoolView } from '#core/console/pools.ts';
import { AdminClient } from '../client/admin_client.ts';
import type { Command } from './command.ts';
import { confirm, readConnection } from './operator.ts';
import { RULE_OPTIONS, type Rules, readRules, rulesHelp } from './pool_rules.ts';
import { startProgress } from './progress.ts';
import { formatTable } from './table.ts';
import { UsageError } from './usage_error.ts';

const MAX_SLOTS = 1_000_000;
/** A request adds so many: well under a second, so that the bar moves and no statement runs into its time limit. */
const SLOTS_PER_REQUEST = 20_000;
const PAGE_ITEMS = '1000';

const usage = `sluice pools list|show|create|open|close|set|add-slots [pool] [options]

  list                    all pools, with what is left
  show <pool> …           the rules and levels of some
  create <pool>           a new pool: --slots N and rules
  open <pool> …           take claims (the opening times still count)
  close <pool> …          take no more claims; those that were made go on
  set <pool>              change rules
  add-slots <pool> <n>    put n more slots on sale, at most ${MAX_SLOTS}

Options of create:
  --slots N               how many slots, at most ${MAX_SLOTS} (default 0)
  --closed                do not open it yet

Rules, for create and set ("none" takes one away):
${rulesHelp()}

Options:
  --yes                   close without asking
  --reason TEXT           why, for the audit log
  --json                  for machines

Environment:
  SLUICE_URL, SLUICE_ADMIN_KEY   the server and its key (default: those of the stack in .sluice)
  SLUICE_OPERATOR                who you are, for the audit log (default: $USER)

Exit code: 0 when all is done, 1 when it is not, 2 when the call was not understood.

Examples:
  sluice pools create opening_night --slots 500 --max-per-user 2 --opens-at 2026-03-01T18:00:00Z
  sluice pools set opening_night --commit-rate-per-sec 50 --reason 'the ledger is slow today'
  sluice pools list --json | jq '.items[] | select(.status == "open") | .pool_id'
`;

const OPTIONS = {
  ...RULE_OPTIONS,
  slots: { type: 'string' },
  closed: { type: 'boolean', default: false },
  yes: { type: 'boolean', default: false },
  reason: { type: 'string' },
  json: { type: 'boolean', default: false },
} as const;

type Values = { slots?: string; closed: boolean; yes: boolean; reason?: string; json: boolean };

interface Call {
  readonly api: AdminClient;
  readonly pools: readonly string[];
  readonly rules: Rules;
  readonly values: Values;
}

const ACTIONS: Readonly<Record<string, (call: Call) => Promise<number>>> = {
  list,
  show,
  create,
  open: (call) => changeEach(call, { is_active: true }),
  close,
  set,
  'add-slots': addSlots,
};

async function run(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  const [name, ...pools] = positionals;
  const action = name !== undefined && Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined;
  if (action === undefined)
    throw new UsageError(name === undefined ? 'say what to do' : `pools cannot ${name}`);
  const rules = readRules(values);
  const takesRules = name === 'create' || name === 'set';
  if (!takesRules && Object.keys(rules).length > 0) throw new UsageError(`${name} takes no rules; set does`);
  if (name !== 'create' && (values.slots !== undefined || values.closed))
    throw new UsageError('--slots and --closed are for create; see add-slots and close');
  if (name === 'list' ? pools.length > 0 : pools.length === 0)
    throw new UsageError(name === 'list' ? 'list takes no pool; show does' : `${name} needs a pool`);
  return action({ api: new AdminClient(readConnection(process.env)), pools, rules, values });
}

async function list({ api, values }: Call): Promise<number> {
  const items = await api.all<PoolView>('/admin/pools', { limit: PAGE_ITEMS });
  if (values.json) console.log(JSON.stringify({ items }));
  else console.log(items.length === 0 ? 'No pools. `sluice pools create` makes one.' : tableOf(items));
  return 0;
}

async function show({ api, pools, values }: Call): Promise<number> {
  const items = await Promise.all(pools.map((pool) => api.get<PoolView>(path(pool))));
  for (const item of items) print(item, values);
  return 0;
}

async function create({ api, pools, rules, values }: Call): Promise<number> {
  const pool_id = only(pools, 'create');
  const slots = readCount('--slots', values.slots ?? '0', 0);
  const isLarge = slots > SLOTS_PER_REQUEST;
  // A large pool opens when it is complete.
  const isActive = !values.closed && rules.is_active !== false;
  const first = { ...rules, ...reasonOf(values), is_active: isActive && !isLarge };
  const made = await api.post<PoolView>('/admin/pools', {
    pool_id,
    slots: Math.min(slots, SLOTS_PER_REQUEST),
    ...first,
  });
  if (!isLarge) return print(made, values);
  await addInSteps(api, pool_id, slots - SLOTS_PER_REQUEST, values);
  return print(await api.post<PoolView>(path(pool_id), { is_active: isActive, ...reasonOf(values) }), values);
}

async function close(call: Call): Promise<number> {
  const question = `Close ${call.pools.join(', ')}? Buyers are told so at once.`;
  if (!call.values.yes && !(await confirm(question))) {
    console.error('Nothing was changed.');
    return 1;
  }
  return changeEach(call, { is_active: false });
}

async function set({ api, pools, rules, values }: Call): Promise<number> {
  const pool = only(pools, 'set');
  if (Object.keys(rules).length === 0) throw new UsageError('set needs a rule');
  return print(await api.post<PoolView>(path(pool), { ...rules, ...reasonOf(values) }), values);
}

async function addSlots({ api, pools, values }: Call): Promise<number> {
  const [pool, count, ...rest] = pools;
  if (pool === undefined || count === undefined || rest.length > 0)
    throw new UsageError('add-slots needs a pool and a number');
  return print(await addInSteps(api, pool, readCount('the number of slots', count, 1), values), values);
}

/** Each step is a transaction of its own: what was added stays, and is told. */
async function addInSteps(api: AdminClient, pool: string, count: number, values: Values): Promise<PoolView> {
  const progress = startProgress(count, 'slots');
  let added = 0;
  let latest: PoolView | undefined;
  try {
    while (latest === undefined || added < count) {
      const step = Math.min(SLOTS_PER_REQUEST, count - added);
      latest = await api.post<PoolView>(path(pool), { add_slots: step, ...reasonOf(values) });
      added += step;
      progress.advance(step);
    }
    return latest;
  } catch (error) {
    if (added > 0) console.error(`${added} of ${count} slots were added.`);
    throw error;
  } finally {
    progress.end();
  }
}

async function changeEach({ api, pools, values }: Call, rules: Rules): Promise<number> {
  for (const pool of pools)
    print(await api.post<PoolView>(path(pool), { ...rules, ...reasonOf(values) }), values);
  return 0;
}

function print(pool: PoolView, { json }: Pick<Values, 'json'>): number {
  if (json) console.log(JSON.stringify(pool));
  else {
    const fields = Object.entries(pool).map(([name, value]) => [name, value === null ? '-' : String(value)]);
    console.log(formatTable(['RULE', 'VALUE'], fields));
  }
  return 0;
}

function tableOf(pools: PoolView[]): string {
  const count = (value: number | null) => (value === null ? '?' : String(value));
  return formatTable(
    ['POOL', 'STATUS', 'CAPACITY', 'FREE', 'HELD', 'SOLD', 'OPENS'],
    pools.map((pool) => [
      pool.pool_id,
      pool.status,
      count(pool.capacity),
      count(pool.available),
      count(pool.reserved),
      count(pool.consumed),
      pool.opens_at ?? '-',
    ]),
  );
}

function path(pool: string): string {
  // As the server spells it: these two are not escaped.
  return `/admin/pools/${encodeURIComponent(pool).replaceAll('%3A', ':').replaceAll('%40', '@')}`;
}

function only([pool, ...rest]: readonly string[], action: string): string {
  if (pool === undefined || rest.length > 0) throw new UsageError(`${action} takes one pool`);
  return pool;
}

function reasonOf({ reason }: Values): { reason?: string } {
  return reason ? { reason } : {};
}

function readCount(name: string, text: string, min: number): number {
  const count = Number(text);
  if (/^\d{1,7}$/.test(text) && count >= min && count <= MAX_SLOTS) return count;
  throw new UsageError(`${name} is "${text}"; it must be a number from ${min} to ${MAX_SLOTS}`);
}

export const pools: Command = { summary: 'list, create and change pools', usage, run };
