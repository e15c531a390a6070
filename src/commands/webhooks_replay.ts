// `sluice webhooks replay` and `skip`: stored events go round again, or are set aside. tools/webhook_replay.sh comes here.

import { parseArgs } from 'node:util';
import { isDone } from '#core/console/outcomes.ts';
import type { EventFilter, EventResult, OperatorStore } from '#core/webhook/operators.ts';
import { actor, canAsk, confirm } from './operator.ts';
import { startProgress } from './progress.ts';
import { formatTable } from './table.ts';
import { UsageError } from './usage_error.ts';
import { FILTER_OPTIONS, isFiltered, readFilter, readText, readUuid } from './webhooks_filter.ts';
import { withStore } from './webhooks_store.ts';

type Action = 'replay' | 'skip';

interface Target {
  readonly id: string;
  readonly eventId: string;
}

interface Request {
  readonly ids: string[];
  readonly filter: EventFilter;
  /** The caller named one event. */
  readonly isOne: boolean;
  readonly reason: string | null;
  readonly idempotencyKey: string | null;
  readonly dryRun: boolean;
  readonly yes: boolean;
  readonly json: boolean;
}

const OPTIONS = {
  ...FILTER_OPTIONS,
  reason: { type: 'string' },
  'idempotency-key': { type: 'string' },
  'dry-run': { type: 'boolean', default: false },
  yes: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
} as const;

/** One batch is one transaction: all of it with its audit rows, or nothing. */
const BATCH = 500;
const MAX_KEY_CHARS = 200;

export async function run(action: Action, args: string[]): Promise<number> {
  const request = readRequest(action, args);
  return withStore(async (store) => {
    const targets = await find(store, request);
    if (targets.length === 0) {
      console.log(request.json ? JSON.stringify({ results: [] }) : 'No such events.');
      return request.isOne ? 1 : 0;
    }
    if (request.idempotencyKey !== null && targets.length > 1)
      throw new UsageError(`--idempotency-key is for one event, and there are ${targets.length}`);
    if (!(await isAllowed(action, targets, request))) {
      console.error('Nothing was changed.');
      return 1;
    }
    const results = await act(store, action, targets, request);
    report(results, request.json);
    return results.every(isDone) ? 0 : 1;
  });
}

function readRequest(action: Action, args: string[]): Request {
  const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  const ids = [...new Set(positionals.map((text) => readUuid('an id', text)))];
  const key = values['idempotency-key'];
  if (ids.length > 0 && (isFiltered(values) || values.limit !== undefined))
    throw new UsageError('give ids or filters, not both');
  if (ids.length === 0 && !isFiltered(values)) throw new UsageError(`${action} needs ids or a filter`);
  if (action === 'skip' && key !== undefined) throw new UsageError('--idempotency-key is for replay');
  const filter = readFilter(values);
  const isOne = values['event-id'] !== undefined || ids.length === 1;
  return {
    ids,
    // Whoever names an event wants to hear about it, whatever its status; a sweep is about what went wrong.
    filter: isOne || filter.statuses ? filter : { ...filter, statuses: ['failed', 'dead_letter'] },
    isOne,
    reason: values.reason === undefined ? null : readText('--reason', values.reason),
    idempotencyKey: key === undefined ? null : readText('--idempotency-key', key, MAX_KEY_CHARS),
    dryRun: values['dry-run'],
    yes: values.yes,
    json: values.json,
  };
}

/** All ids before the first change: an event that fails again at once must not be found a second time. */
async function find(store: OperatorStore, { ids, filter }: Request): Promise<Target[]> {
  if (ids.length > 0) return ids.map((id) => ({ id, eventId: id }));
  const targets: Target[] = [];
  let page: Target[];
  do {
    const after = targets.at(-1)?.id;
    const limit = Math.min(BATCH, filter.limit - targets.length);
    const rows = await store.listEvents({ ...filter, limit, ...(after !== undefined && { after }) });
    page = rows.map(({ id, event_id }) => ({ id, eventId: event_id }));
    targets.push(...page);
  } while (page.length === BATCH && targets.length < filter.limit);
  return targets;
}

async function isAllowed(
  action: Action,
  targets: Target[],
  { dryRun, yes, isOne }: Request,
): Promise<boolean> {
  // Whoever names one event has said enough for a script.
  if (dryRun || yes || (isOne && !canAsk())) return true;
  return confirm(`${action} ${targets.length} event${targets.length === 1 ? '' : 's'}?`);
}

async function act(
  store: OperatorStore,
  action: Action,
  targets: Target[],
  { reason, idempotencyKey, dryRun }: Request,
): Promise<EventResult[]> {
  const progress = startProgress(targets.length, 'events');
  const results: EventResult[] = [];
  try {
    for (let at = 0; at < targets.length; at += BATCH) {
      const ids = targets.slice(at, at + BATCH).map(({ id }) => id);
      const common = { ids, actor: actor(), reason, dryRun };
      results.push(
        ...(action === 'replay'
          ? await store.replay({ ...common, idempotencyKey })
          : await store.skip(common)),
      );
      progress.advance(ids.length);
    }
  } finally {
    progress.end();
  }
  return results;
}

function report(results: EventResult[], asJson: boolean): void {
  if (asJson) {
    console.log(JSON.stringify({ results }));
    return;
  }
  const rows = results.map(({ id, event_id, outcome }) => [id, event_id ?? '-', outcome]);
  console.log(formatTable(['ID', 'EVENT', 'OUTCOME'], rows));
}
