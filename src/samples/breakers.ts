// Breakers of this process as marks: workers leave a target alone after failures, and the databases are told when, for how
// long and, of hooks and the ledger, why. Targets come and go through the metric that counts them.

import type { Log, Metrics } from '#core/ports.ts';
import { shortened } from '#core/text.ts';
import { createDatabase, type Database } from '../db/database.ts';
import { last, startLoop } from '../loop.ts';
import type { NewMark } from './outages.ts';

const TELL_EVERY_MS = 2_000;
/** A mark that goes on is told again so often: one whose teller is silent for two minutes counts as ended. */
const TELL_AGAIN_MS = 30_000;
/** public.note_marks takes no more at once. */
const MOST_AT_ONCE = 50;
const MAX_WHY_CHARS = 200;

/** The metrics that go up when a worker leaves a target alone, and the label that names it. */
const BREAKERS: Readonly<Record<string, string>> = {
  sluice_bridge_breaker_open: 'target',
  sluice_order_breaker_open: 'target',
  webhook_handler_breaker_open: 'handler',
};

interface Opened {
  readonly sinceMs: number;
  /** Workers of this process that left the target alone. */
  workers: number;
  endedMs: number | null;
  toldMs: number;
  why?: string;
}

export class BreakerMarks {
  readonly #opened = new Map<string, Opened>();

  /** Counts as `metrics` does, and notes what breakers do. */
  watching<M extends Metrics>(metrics: M): M {
    return {
      ...metrics,
      count: (name, labels, by = 1) => {
        const label = BREAKERS[name];
        if (label !== undefined) this.#see(subjectOf(label, labels), by, Date.now());
        metrics.count(name, labels, by);
      },
    };
  }

  /** Why a target that is left alone is down, as the last try found it. */
  readonly explain = (target: string, text: string): void => {
    const opened = this.#opened.get(target);
    const why = shortened(text, MAX_WHY_CHARS);
    if (opened === undefined || opened.why === why) return;
    Object.assign(opened, { why, toldMs: 0 });
  };

  #see(target: string, by: number, nowMs: number): void {
    const known = this.#opened.get(target);
    const opened =
      known === undefined || known.endedMs !== null
        ? { sinceMs: nowMs, workers: 0, endedMs: null, toldMs: 0 }
        : known;
    opened.workers += by;
    if (opened.workers <= 0) Object.assign(opened, { endedMs: nowMs, toldMs: 0 });
    this.#opened.set(target, opened);
  }

  /** The process ends, and leaves nothing alone any more. */
  end(nowMs: number): void {
    for (const opened of this.#opened.values())
      if (opened.endedMs === null) Object.assign(opened, { endedMs: nowMs, toldMs: 0 });
  }

  /** What has to be told now. */
  due(nowMs: number): NewMark[] {
    return [...this.#opened]
      .filter(([, { toldMs }]) => nowMs - toldMs >= TELL_AGAIN_MS)
      .slice(0, MOST_AT_ONCE)
      .map(([subject, { sinceMs, endedMs, why }]) => ({
        kind: 'breaker',
        subject,
        began_ms: sinceMs,
        ended_ms: endedMs,
        ...(why !== undefined && { why }),
      }));
  }

  told(marks: readonly NewMark[], nowMs: number): void {
    for (const { subject, began_ms, ended_ms, why } of marks) {
      const opened = this.#opened.get(subject);
      if (opened === undefined || opened.sinceMs !== began_ms || opened.endedMs !== ended_ms) continue;
      if (opened.why !== why) continue;
      if (ended_ms !== null) this.#opened.delete(subject);
      else opened.toldMs = nowMs;
    }
  }
}

const subjectOf = (label: string, labels: Readonly<Record<string, string>>): string =>
  label === 'handler' ? `handler ${labels[label]}` : String(labels[label]);

/**
 * Tells DB1, and where that is away DB2. The last that it tells is that its breakers are closed: otherwise a mark would outlive the
 * mended release by minutes. Another process that still leaves a target alone tells so again within half a minute.
 */
export function startBreakerMarks(
  marks: BreakerMarks,
  urls: readonly string[],
  log: Log,
): { stop(): Promise<void> } {
  const databases = urls.map((url) =>
    createDatabase({ url, max: 1, applicationName: 'sluice-marks', callTimeoutMs: 5_000, log }),
  );
  const tell = async (): Promise<void> => {
    const due = marks.due(Date.now());
    if (due.length === 0) return;
    await tellFirst(databases, due);
    marks.told(due, Date.now());
  };
  const loop = startLoop('telling of breakers', TELL_EVERY_MS, log, tell);
  const close = async (): Promise<void> => {
    await loop.stop();
    marks.end(Date.now());
    if (!loop.isFailing)
      await tell().catch((error: unknown) => log.debug('breakers were not told', { cause: error }));
    await Promise.all(databases.map((db) => db.end()));
  };
  return { stop: () => last(close()) };
}

async function tellFirst(databases: readonly Database[], marks: readonly NewMark[]): Promise<void> {
  let failure: unknown;
  for (const db of databases) {
    try {
      await db.call('public.note_marks', { p_marks: marks });
      return;
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}
