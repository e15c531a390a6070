// `sluice pools`: what is on sale, under which rules, and changes to both.

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { PoolView } from '#core/console/pools.ts';
import { LABELS_PER_STEP, type SlotStep, slotSteps } from '#core/console/slot_steps.ts';
import { AdminClient, ApiError } from '../admin/client.ts';
import { action, type Group, readWhole, short, UsageError } from './grammar.ts';
import { confirm, listAction, OPTION, readConnection, showAction, VARIABLES } from './operator.ts';
import { RULE_OPTIONS, type Rules, readRules } from './pool_rules.ts';
import { describe } from './pools_describe.ts';
import { move } from './pools_move.ts';
import { startProgress } from './progress.ts';
import { formatTable } from './table.ts';

const MAX_SLOTS = 1_000_000;
/** A step whose answer was lost is asked for again, with the same request id: a restart of the server takes a few seconds. */
const TRIES = 4;
const PAUSE_MS = 500;
const PAGE_ITEMS = '1000';

const REQUEST_ID = {
  value: 'ID',
  about:
    'makes it safe to run the same command again: no slot is added twice (default: a new one; the command prints it when you need it)',
};

/** The options that actions share; each takes those it declares. */
interface Values {
  readonly json: boolean;
  readonly reason?: string | undefined;
  readonly 'request-id'?: string | undefined;
}

const connect = (): AdminClient => new AdminClient(readConnection(process.env));

function addStep(api: AdminClient, pool: string, step: SlotStep, values: Values): Promise<PoolView> {
  const { slots: add_slots, request_id } = step;
  return api.post<PoolView>(path(pool), { add_slots, request_id, ...reasonOf(values) });
}

type Send = (step: SlotStep, isFirst: boolean, isLast: boolean) => Promise<PoolView>;

/** Each step is its own transaction: slots that were added stay, and a failure says how many, and how to go on. */
async function inSteps(slots: number, values: Values, send: Send, perStep?: number): Promise<PoolView> {
  const requestId = values['request-id'] ?? randomUUID();
  const steps = slotSteps(slots, requestId, perStep);
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

async function changeEach(pools: readonly string[], rules: Rules, values: Values): Promise<number> {
  const api = connect();
  for (const pool of pools)
    print(await api.post<PoolView>(path(pool), { ...rules, ...reasonOf(values) }), values);
  return 0;
}

function print(pool: PoolView, { json }: Values): number {
  if (json) console.log(JSON.stringify(pool));
  else {
    const fields = Object.entries(pool).map(([name, value]) => [name, value === null ? '-' : String(value)]);
    console.log(formatTable(['RULE', 'VALUE'], fields));
  }
  return 0;
}

function tableOf(pools: PoolView[]): string {
  const count = (value: number | null) => (value === null ? '?' : String(value));
  const hasCells = pools.some(({ cell }) => cell !== undefined);
  return formatTable(
    ['POOL', ...(hasCells ? ['CELL'] : []), 'STATUS', 'CAPACITY', 'FREE', 'HELD', 'SOLD', 'OPENS'],
    pools.map((pool) => [
      pool.pool_id,
      ...(hasCells ? [pool.cell ?? '-'] : []),
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

function reasonOf({ reason }: Values): { reason?: string } {
  return reason ? { reason } : {};
}

async function list(json: boolean): Promise<number> {
  const items = await connect().all<PoolView>('/admin/pools', { limit: PAGE_ITEMS });
  if (json) console.log(JSON.stringify({ items }));
  else console.log(items.length === 0 ? 'No pools. `sluice pools create` makes one.' : tableOf(items));
  return 0;
}

async function show(pools: readonly string[], json: boolean): Promise<number> {
  const api = connect();
  const items = await Promise.all(pools.map((pool) => api.get<PoolView>(path(pool))));
  for (const item of items) print(item, { json });
  return 0;
}

const create = action({
  about: `Create a pool with slots and rules

Sends large numbers of slots in steps of 50000 and opens the pool when it is complete. The value "none" leaves a rule unset.`,
  args: '<pool>',
  options: {
    slots: { range: [0, MAX_SLOTS], default: 0, about: 'how many slots' },
    cell: { value: 'CELL', about: 'the cell for the pool (default: the one with the fewest pools)' },
    closed: { about: 'do not open it yet' },
    ...RULE_OPTIONS,
    'request-id': REQUEST_ID,
    reason: OPTION.reason,
    json: OPTION.json,
  },
  examples: [
    'sluice pools create opening_night --slots 500 --max-per-user 2 --opens-at 2026-03-01T18:00:00Z',
  ],
  async run(values, [pool_id]) {
    const rules = readRules(values);
    const api = connect();
    // A large pool opens when it is complete.
    const isActive = !values.closed;
    const made = await inSteps(values.slots, values, (step, isFirst, isLast) =>
      isFirst
        ? api.post<PoolView>('/admin/pools', {
            pool_id,
            ...(values.cell && { cell: values.cell }),
            ...step,
            ...rules,
            ...reasonOf(values),
            is_active: isActive && isLast,
          })
        : addStep(api, pool_id, step, values),
    );
    if (made.is_active === isActive) return print(made, values);
    return print(
      await api.post<PoolView>(path(pool_id), { is_active: isActive, ...reasonOf(values) }),
      values,
    );
  },
});

const open = action({
  about: 'Open pools for claims; their opening times still apply',
  args: '<pool> …',
  options: { reason: OPTION.reason, json: OPTION.json },
  examples: ['sluice pools open opening_night'],
  run: (values, pools) => changeEach(pools, { is_active: true }, values),
});

const close = action({
  about: 'Close pools for new claims; claims that were made go on',
  args: '<pool> …',
  options: { yes: OPTION.yes, reason: OPTION.reason, json: OPTION.json },
  examples: ["sluice pools close opening_night --reason 'the hall is flooded' --yes"],
  async run(values, pools) {
    if (!values.yes && !(await confirm(`Close ${pools.join(', ')}? Buyers are told so at once.`))) {
      console.error('Nothing was changed.');
      return 1;
    }
    return changeEach(pools, { is_active: false }, values);
  },
});

const set = action({
  about: `Change rules

The value "none" removes a rule.`,
  args: '<pool>',
  options: { ...RULE_OPTIONS, reason: OPTION.reason, json: OPTION.json },
  examples: ["sluice pools set opening_night --commit-rate-per-sec 50 --reason 'the ledger is slow today'"],
  async run(values, [pool]) {
    const rules = readRules(values);
    if (Object.keys(rules).length === 0) throw new UsageError('set needs a rule, such as --max-per-user 2');
    return changeEach([pool], rules, values);
  },
});

const addSlots = action({
  about: `Put more slots on sale, at most ${MAX_SLOTS}

Sends large numbers in steps of 50000, and of ${LABELS_PER_STEP} with labels.`,
  args: '<pool> <n>',
  options: {
    labels: { value: 'FILE', about: 'what tickets call these slots: a file of <n> lines, one label each' },
    'request-id': REQUEST_ID,
    reason: OPTION.reason,
    json: OPTION.json,
  },
  examples: [
    'sluice pools add-slots opening_night 100',
    'sluice pools add-slots opening_night 24 --labels row_7.txt',
  ],
  async run(values, [pool, count]) {
    const slots = readWhole('the number of slots', count, [1, MAX_SLOTS]);
    const api = connect();
    if (values.labels === undefined)
      return print(await inSteps(slots, values, (step) => addStep(api, pool, step, values)), values);
    const labels = readLabels(values.labels, slots);
    let sent = 0;
    const made = await inSteps(
      slots,
      values,
      async ({ slots: many, request_id }) => {
        const step = { labels: labels.slice(sent, sent + many), request_id, ...reasonOf(values) };
        const view = await api.post<PoolView>(path(pool), step);
        sent += many;
        return view;
      },
      LABELS_PER_STEP,
    );
    return print(made, values);
  },
});

/** The number is asked for beside the file: a wrong file is noticed before a seat is on sale. */
function readLabels(file: string, slots: number): string[] {
  const labels = textIn(file)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  if (labels.length !== slots)
    throw new UsageError(`${file} has ${labels.length} labels, and ${slots} slots were asked for`);
  const seen = new Set<string>();
  for (const label of labels) {
    if (seen.has(label)) throw new UsageError(`${file} has the label "${short(label)}" twice`);
    seen.add(label);
  }
  return labels;
}

function textIn(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`the labels cannot be read: ${(error as Error).message}`);
  }
}

export const command: Group = {
  about: 'See what is on sale, under which rules, and change both',
  environment: { ...VARIABLES.server, ...VARIABLES.operator },
  exits: ['when all is done', 'when it is not'],
  actions: {
    list: listAction(
      'List all pools, with what is left',
      `sluice pools list --json | jq '.items[] | select(.status == "open") | .pool_id'`,
      list,
    ),
    show: showAction(
      'Show the rules and levels of pools',
      '<pool> …',
      'sluice pools show opening_night',
      show,
    ),
    create,
    open,
    close,
    set,
    describe,
    'add-slots': addSlots,
    move,
  },
};
