// Fills gaps: the events that the provider says it sent go the way of a delivery, from reading to the record. A known event is
// a duplicate, so a backfill can be run again, cut off, or run by two processes at once.

import type { Log } from '../../ports.ts';
import { ENDED_BY } from '../outcome.ts';
import type { Recorded, WebhookStore } from '../ports.ts';
import type { ReadEvent, VerifyContext } from '../provider.ts';
import { providerNamed } from '../providers.ts';
import { Recorder } from '../record.ts';
import type { AskingEndpoint, Fetched } from './source.ts';

export interface BackfillPorts {
  readonly store: Pick<WebhookStore, 'record'>;
  /** Those of the ids that are recorded. */
  readonly knownEvents: (webhookId: string, eventIds: readonly string[]) => Promise<ReadonlySet<string>>;
  readonly context: VerifyContext;
  readonly log: Log;
  /** Told after new events have been committed. */
  readonly wake: () => Promise<void>;
  /** Told after each page. */
  readonly onPage: (counts: Counts) => void;
}

export interface Counts {
  /** What the provider named. */
  readonly asked: number;
  /** Recorded before. */
  readonly known: number;
  /** Recorded now; in a dry run what would be, those that are not for the endpoint too. */
  readonly new: number;
  /** Of the new ones, those whose type has no handler: they have no effect. */
  readonly unhandled: number;
  /** Recorded now as not for this endpoint. */
  readonly skipped: number;
  /** Recorded now as dead letters, because jsonb cannot hold them. */
  readonly quarantined: number;
}

export const NOTHING_YET: Counts = { asked: 0, known: 0, new: 0, unhandled: 0, skipped: 0, quarantined: 0 };

const NO_HANDLER_LANE = 0;

export class Backfill {
  readonly #endpoint: AskingEndpoint;
  readonly #ports: BackfillPorts;
  readonly #recorder: Recorder;

  constructor(endpoint: AskingEndpoint, ports: BackfillPorts) {
    this.#endpoint = endpoint;
    this.#ports = ports;
    this.#recorder = new Recorder((deliveries) => ports.store.record(deliveries, true));
  }

  async run(pages: AsyncIterable<readonly Fetched[]>, isDryRun: boolean): Promise<Counts> {
    let counts = NOTHING_YET;
    for await (const page of pages) {
      const read = (await Promise.all(page.map((request) => this.#read(request)))).flat();
      const more = isDryRun ? await this.#look(read) : await this.#record(read);
      counts = sum(counts, { ...more, asked: read.length });
      this.#ports.onPage(counts);
    }
    return counts;
  }

  async #read(request: Fetched): Promise<{ request: Fetched; event: ReadEvent }[]> {
    const provider = providerNamed(this.#endpoint.provider);
    if (provider === undefined) throw new Error(`unknown provider ${this.#endpoint.provider}`);
    return (await provider.read(request, this.#ports.context)).map((event) => ({ request, event }));
  }

  async #look(read: readonly { event: ReadEvent }[]): Promise<Partial<Counts>> {
    const ids = read.map(({ event }) => event.eventId);
    const known = await this.#ports.knownEvents(this.#endpoint.webhook_id, ids);
    const knownCount = ids.filter((id) => known.has(id)).length;
    return { known: knownCount, new: ids.length - knownCount };
  }

  async #record(read: readonly { request: Fetched; event: ReadEvent }[]): Promise<Partial<Counts>> {
    const { webhook_id: webhookId } = this.#endpoint;
    const recorded = await Promise.all(
      read.map(async ({ request, event }) => {
        const [row] = await this.#recorder.record({
          webhookId,
          events: [event],
          body: request.body,
          signature: null,
        });
        if (row === undefined) throw new Error(`record_events gave no row for ${event.eventId}`);
        if (row.outcome === 'quarantined')
          this.#ports.log.warn(ENDED_BY.quarantined, {
            event_id: event.eventId,
            webhook_id: webhookId,
            reason: event.quarantine,
          });
        return countOf(row);
      }),
    );
    const counts = recorded.reduce(sum, NOTHING_YET);
    if (counts.new > 0) await this.#ports.wake();
    return counts;
  }
}

function countOf({ outcome, lane }: Recorded): Counts {
  switch (outcome) {
    case 'recorded':
      return { ...NOTHING_YET, new: 1, unhandled: lane === NO_HANDLER_LANE ? 1 : 0 };
    case 'skipped':
      return { ...NOTHING_YET, skipped: 1 };
    case 'quarantined':
      return { ...NOTHING_YET, quarantined: 1 };
    default:
      return { ...NOTHING_YET, known: 1 };
  }
}

function sum(a: Counts, b: Partial<Counts>): Counts {
  const entries = Object.entries(a) as [keyof Counts, number][];
  return Object.fromEntries(
    entries.map(([name, count]) => [name, count + (b[name] ?? 0)]),
  ) as unknown as Counts;
}
