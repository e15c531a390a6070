// `sluice webhooks list`, `show` and `prune`.

import { parseArgs } from 'node:util';
import type { EventDetails, EventRow, OperatorStore } from '#core/webhook/operators.ts';
import { actor, confirm } from './operator.ts';
import { formatTable } from './table.ts';
import { UsageError } from './usage_error.ts';
import { FILTER_OPTIONS, isUuid, readFilter, readText, readWhole, short } from './webhooks_filter.ts';
import { withStore } from './webhooks_store.ts';

const MAX_LIST = 1_000;
const MAX_DAYS = 36_500;
const PRUNE_BATCH = 1_000;

export async function list(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: { ...FILTER_OPTIONS, json: { type: 'boolean', default: false } },
  });
  const filter = readFilter(values);
  if (filter.limit > MAX_LIST) throw new UsageError(`--limit of list is at most ${MAX_LIST}`);
  const events = await withStore((store) => store.listEvents({ ...filter, newestFirst: true }));
  if (values.json) console.log(JSON.stringify({ events }));
  else console.log(events.length === 0 ? 'No such events.' : tableOf(events));
  return 0;
}

export async function show(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    options: { json: { type: 'boolean', default: false } },
    allowPositionals: true,
  });
  const ids = positionals.map((text) => readText('an id', text));
  if (ids.length === 0) throw new UsageError('show needs an id; `sluice webhooks list` shows them');
  return withStore(async (store) => {
    let code = 0;
    for (const id of ids) {
      const events = await findEvents(store, id);
      for (const event of events) console.log(JSON.stringify(event, undefined, values.json ? undefined : 2));
      if (events.length > 0) continue;
      console.error(`There is no event ${short(id)}.`);
      code = 1;
    }
    return code;
  });
}

/** By our id, else by the provider's, which two providers may have given to one event each. */
async function findEvents(store: OperatorStore, id: string): Promise<EventDetails[]> {
  const event = isUuid(id) ? await store.showEvent(id.toLowerCase()) : undefined;
  if (event !== undefined) return [event];
  const rows = await store.listEvents({ event_id: id, limit: MAX_LIST });
  const found = await Promise.all(rows.map((row) => store.showEvent(row.id)));
  return found.filter((one) => one !== undefined);
}

export async function prune(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      days: { type: 'string' },
      yes: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
    },
  });
  const days = values.days === undefined ? null : readWhole('--days', values.days, MAX_DAYS);
  if (!values.yes && !(await confirm('Remove payloads and raw bodies for good?'))) {
    console.error('Nothing was changed.');
    return 1;
  }
  return withStore(async (store) => {
    let pruned = 0;
    let count: number;
    do {
      count = await store.prune(days, PRUNE_BATCH, actor());
      pruned += count;
    } while (count === PRUNE_BATCH);
    console.log(values.json ? JSON.stringify({ pruned }) : `${pruned} events lost their payload.`);
    return 0;
  });
}

function tableOf(events: EventRow[]): string {
  return formatTable(
    ['ID', 'PROVIDER', 'EVENT', 'TYPE', 'STATUS', 'ATTEMPTS', 'RECEIVED', 'ERROR'],
    events.map((event) => [
      event.id,
      event.provider,
      event.event_id,
      event.event_type,
      event.status,
      String(event.attempts),
      event.received_at.replace(/\.\d+/, ''),
      event.error ?? '',
    ]),
  );
}
