// `sluice webhooks list`, `show` and `prune`.

import type { EventDetails, EventRow, OperatorStore } from '#core/webhook/operators.ts';
import { withStore } from './db2.ts';
import { action, short } from './grammar.ts';
import { actor, confirm, OPTION, showAction } from './operator.ts';
import { formatTable, toTheSecond } from './table.ts';
import { isUuid, readText } from './values.ts';
import { FILTER_OPTIONS, readFilter } from './webhooks_filter.ts';
import { inboxLine } from './webhooks_inbox.ts';

const MAX_LIST = 1_000;
const MAX_DAYS = 36_500;
const PRUNE_BATCH = 1_000;

export const list = action({
  about: 'List stored events, newest first, without their payloads',
  options: {
    ...FILTER_OPTIONS,
    limit: { range: [1, MAX_LIST], default: 100, about: 'at most this many' },
    json: OPTION.json,
  },
  examples: ['sluice webhooks list --status dead_letter --since 2026-02-24'],
  async run(values) {
    const filter = readFilter(values);
    // Deliveries that wait for DB2 are not in it; the line stands beside the table, or beside the word that DB2 is away.
    const line = inboxLine();
    const tellInbox = async () => {
      const text = await line;
      if (text !== undefined) console.error(text);
    };
    const events = await withStore((store) => store.listEvents({ ...filter, newestFirst: true })).catch(
      async (error: unknown) => {
        await tellInbox();
        throw error;
      },
    );
    if (values.json) console.log(JSON.stringify({ events }));
    else console.log(events.length === 0 ? 'No such events.' : tableOf(events));
    await tellInbox();
    return 0;
  },
});

export const show = showAction(
  "Show all that is known about events, by our id or the provider's",
  '<id> …',
  'sluice webhooks show evt_1NG8Du2eZvKYlo2C',
  (words, json) => {
    const ids = words.map((text) => readText('an id', text));
    return withStore(async (store) => {
      let code = 0;
      for (const id of ids) {
        const events = await findEvents(store, id);
        for (const event of events) console.log(JSON.stringify(event, undefined, json ? undefined : 2));
        if (events.length > 0) continue;
        console.error(`The event ${short(id)} does not exist.`);
        code = 1;
      }
      return code;
    });
  },
);

/** By our id, else by the provider's, which two providers may have given to one event each. */
async function findEvents(store: OperatorStore, id: string): Promise<EventDetails[]> {
  const event = isUuid(id) ? await store.showEvent(id.toLowerCase()) : undefined;
  if (event !== undefined) return [event];
  const rows = await store.listEvents({ event_id: id, limit: MAX_LIST });
  const found = await Promise.all(rows.map((row) => store.showEvent(row.id)));
  return found.filter((one) => one !== undefined);
}

export const prune = action({
  about: 'Remove old payloads of events that have ended; the keys that catch duplicates stay',
  options: {
    days: { range: [1, MAX_DAYS], about: 'payloads older than this (default: what each endpoint says)' },
    yes: OPTION.yes,
    json: OPTION.json,
  },
  examples: ['sluice webhooks prune --days 30 --yes'],
  async run({ days, yes, json }) {
    if (!yes && !(await confirm('Remove payloads and raw bodies for good?'))) {
      console.error('Nothing was changed.');
      return 1;
    }
    return withStore(async (store) => {
      let pruned = 0;
      let count: number;
      do {
        count = await store.prune(days ?? null, PRUNE_BATCH, actor());
        pruned += count;
      } while (count === PRUNE_BATCH);
      console.log(json ? JSON.stringify({ pruned }) : `${pruned} events lost their payload.`);
      return 0;
    });
  },
});

function tableOf(events: EventRow[]): string {
  return formatTable(
    ['ID', 'PROVIDER', 'EVENT', 'TYPE', 'STATUS', 'ATTEMPTS', 'RECEIVED', 'BACKFILLED', 'ERROR'],
    events.map((event) => [
      event.id,
      event.provider,
      event.event_id,
      event.event_type,
      event.status,
      String(event.attempts),
      toTheSecond(event.received_at),
      event.backfilled ? 'yes' : '',
      event.error ?? '',
    ]),
  );
}
