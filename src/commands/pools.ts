// `sluice pools`: what is on sale, under which rules, and changes to both.

import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { PoolView } from '#core/console/pools.ts';
import { type SlotStep, slotSteps } from '#core/console/slot_steps.ts';
import { AdminClient, ApiError } from '../admin/client.ts';
import type { Command } from './command.ts';
import { confirm, readConnection } from './operator.ts';
import { RULE_OPTIONS, type Rules, readRules, rulesHelp } from './pool_rules.ts';
import { startProgress } from './progress.ts';
import { formatTable } from './table.ts';
import { UsageError } from './usage_error.ts';

const MAX_SLOTS = 1_000_000;
/** A step whose answer was lost is asked for again, with the same request id: a restart of the server takes a few seconds. */
const TRIES = 4;
const PAUSE_MS = 500;
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

Options of create and add-slots, which send large numbers in steps of 50000:
  --request-id ID         what makes it safe to run the same command again: what was added is not added twice
                          (default: a new one, which is told where it is needed)

Options:
  --yes                   close without asking; needed where there is no terminal
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
  'request-id': { type: 'string' },
  yes: { type: 'boolean', default: false },
  reason: { type: 'string' },
  json: { type: 'boolean', default: false },
} as const;

type Values = {
  slots?: string;
  closed: boolean;
  'request-id'?: string;
  yes: boolean;
  reason?: string;
  json: boolean;
};

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
  if (name !== 'create' && name !== 'add-slots' && values['request-id'] !== undefined)
    throw new UsageError('--request-id is for create and add-slots');
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
  // A large pool opens when it is complete.
  const isActive = !values.closed && rules.is_active !== false;
  const made = await inSteps(slots, values, (step, isFirst, isLast) =>
    isFirst
      ? api.post<PoolView>('/admin/pools', {
          pool_id,
          ...step,
          ...rules,
          ...reasonOf(values),
          is_active: isActive && isLast,
        })
      : addStep(api, pool_id, step, values),
  );
  if (made.is_active === isActive) return print(made, values);
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
  const slots = readCount('the number of slots', count, 1);
  return print(await inSteps(slots, values, (step) => addStep(api, pool, step, values)), values);
}

function addStep(api: AdminClient, pool: string, step: SlotStep, values: Values): Promise<PoolView> {
  const { slots: add_slots, request_id } = step;
  return api.post<PoolView>(path(pool), { add_slots, request_id, ...reasonOf(values) });
}

type Send = (step: SlotStep, isFirst: boolean, isLast: boolean) => Promise<PoolView>;

/** Each step is a transaction of its own: what was added stays, and is told, with how to go on. */
async function inSteps(slots: number, values: Values, send: Send): Promise<PoolView> {
  const requestId = values['request-id'] ?? randomUUID();
  const steps = slotSteps(slots, requestId);
  const progress = startProgress(slots, 'slots');
  let added = 0;
  let latest: PoolView | undefined;
  try {
    for (const [at, step] of steps.entries()) {
      latest = await untilAnswered(() => send(step, at === 0, at === steps.length - 1));
      added += step.slots;
      progress.advance(step.slots);
    }
  } catch (error) {
    if (added > 0 || isAnswerLost(error))
      console.error(
        `${added} of ${slots} slots are there for sure. The same command with --request-id ${requestId} goes on.`,
      );
    throw error;
  } finally {
    progress.end();
  }
  // There is at least one step.
  return latest as PoolView;
}

async function untilAnswered<Answer>(send: () => Promise<Answer>): Promise<Answer> {
  for (let tries = 1; ; tries++) {
    try {
      return await send();
    } catch (error) {
      if (tries >= TRIES || !isAnswerLost(error)) throw error;
      await delay(PAUSE_MS * tries);
    }
  }
}

/** No answer, none that can be read, or one that says to come back: whether the step was taken is not known. */
function isAnswerLost(error: unknown): boolean {
  return error instanceof ApiError && (error.status < 300 || error.status >= 500);
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
  return `/admin/pools/${encodeURIComponent(pool)}`;
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
