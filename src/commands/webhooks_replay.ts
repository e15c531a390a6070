// `sluice webhooks replay` and `skip`: stored events go round again, or are set aside. tools/webhook_replay.sh comes here.

import { isDone } from '#core/console/outcomes.ts';
import type { EventFilter, EventResult, OperatorStore } from '#core/webhook/operators.ts';
import { withStore } from './db2.ts';
import { action, UsageError, type Values } from './grammar.ts';
import { actor, canAsk, confirm, OPTION } from './operator.ts';
import { startProgress } from './progress.ts';
import { reportSteps } from './steps.ts';
import { formatTable } from './table.ts';
import { readReason, readText, readUuid } from './values.ts';
import { FILTER_OPTIONS, isFiltered, readFilter } from './webhooks_filter.ts';

type Change = 'replay' | 'skip';

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

const SKIP_OPTIONS = {
  ...FILTER_OPTIONS,
  'dry-run': { about: 'say what would be done' },
  yes: { about: 'do not ask; needed without a terminal, unless one event is named' },
  reason: OPTION.reason,
  json: OPTION.json,
} as const;
const REPLAY_OPTIONS = {
  ...SKIP_OPTIONS,
  'idempotency-key': {
    value: 'KEY',
    about: 'for one event: its handler sends this key instead of its own',
  },
} as const;

/** One batch is one transaction: all of it with its audit rows, or nothing. */
const BATCH = 500;
const MAX_KEY_CHARS = 200;

async function run(change: Change, request: Request): Promise<number> {
  return withStore(async (store) => {
    const targets = await find(store, request);
    if (targets.length === 0) {
      console.log(request.json ? JSON.stringify({ results: [] }) : 'No such events.');
      return request.isOne ? 1 : 0;
    }
    if (request.idempotencyKey !== null && targets.length > 1)
      throw new UsageError(`--idempotency-key is for one event, and there are ${targets.length}`);
    if (!(await isAllowed(change, targets, request))) {
      console.error('Nothing was changed.');
      return 1;
    }
    return reportSteps<EventResult>(
      (done) => act(store, change, targets, request, done),
      (results) => report(results, request.json),
    );
  });
}

function readRequest(
  change: Change,
  values: Values<typeof SKIP_OPTIONS>,
  words: readonly string[],
  key?: string,
): Request {
  const ids = [...new Set(words.map((text) => readUuid('an id', text)))];
  if (ids.length > 0 && (isFiltered(values) || values.limit !== undefined))
    throw new UsageError('give ids or filters, not both');
  if (ids.length === 0 && !isFiltered(values)) throw new UsageError(`${change} needs ids or a filter`);
  const filter = readFilter(values);
  const isOne = values['event-id'] !== undefined || ids.length === 1;
  return {
    ids,
    // An operator who names an event wants to hear about it, whatever its status; a sweep is about what went wrong.
    filter: isOne || filter.statuses ? filter : { ...filter, statuses: ['failed', 'dead_letter'] },
    isOne,
    reason: readReason(values.reason),
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
  change: Change,
  targets: Target[],
  { dryRun, yes, isOne }: Request,
): Promise<boolean> {
  // A script that names one event has said enough.
  if (dryRun || yes || (isOne && !canAsk())) return true;
  return confirm(`${change} ${targets.length} event${targets.length === 1 ? '' : 's'}?`);
}

async function act(
  store: OperatorStore,
  change: Change,
  targets: Target[],
  { reason, idempotencyKey, dryRun }: Request,
  done: EventResult[],
): Promise<void> {
  const progress = startProgress(targets.length, 'events');
  try {
    for (let at = 0; at < targets.length; at += BATCH) {
      const ids = targets.slice(at, at + BATCH).map(({ id }) => id);
      const common = { ids, actor: actor(), reason, dryRun };
      done.push(
        ...(change === 'replay'
          ? await store.replay({ ...common, idempotencyKey })
          : await store.skip(common)),
      );
      progress.advance(ids.length);
    }
  } finally {
    progress.end();
  }
}

function report(results: readonly EventResult[], asJson: boolean): number {
  const rows = results.map(({ id, event_id, outcome }) => [id, event_id ?? '-', outcome]);
  console.log(asJson ? JSON.stringify({ results }) : formatTable(['ID', 'EVENT', 'OUTCOME'], rows));
  return results.every(isDone) ? 0 : 1;
}

const WITHOUT_IDS = `Without ids it takes the oldest events that the filters find; at least one filter is needed then. Without
--status it takes failed and dead_letter; with --event-id any status.`;

export const replay = action({
  about: `Replay failed events and dead letters\n\n${WITHOUT_IDS}`,
  args: '[id …]',
  options: REPLAY_OPTIONS,
  examples: [
    "sluice webhooks replay --event-id evt_1NG8Du2eZvKYlo2C --reason 'handler mended'",
    'sluice webhooks replay --provider stripe --since 2026-02-24 --limit 5000 --yes --json',
  ],
  run: async (values, ids) => run('replay', readRequest('replay', values, ids, values['idempotency-key'])),
});

export const skip = action({
  about: `Skip events: workers do not try them again\n\n${WITHOUT_IDS}`,
  args: '[id …]',
  options: SKIP_OPTIONS,
  examples: ['sluice webhooks skip --provider stripe --status dead_letter --dry-run'],
  run: async (values, ids) => run('skip', readRequest('skip', values, ids)),
});
