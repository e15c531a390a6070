// GET /admin/samples: what is remembered of a time, from all databases that answer.

import type { CallFunction } from '../call_function.ts';
import { inTime } from '../deadline.ts';
import { HttpError } from '../errors.ts';
import { isUnavailable } from '../failure.ts';
import type { Clock } from '../ports.ts';
import { readQuery } from '../query.ts';
import { type HttpResponse, jsonResponse, type Route } from '../router.ts';
import type { Schema } from '../schema.ts';
import {
  type Asked,
  historyOf,
  partIn,
  type Remembered,
  rangeMs,
  readFromMs,
  type Window,
  windowOf,
} from './samples.ts';

export interface SamplesPorts {
  /** One for each cell; the only one has no name. */
  readonly intakes: readonly { readonly name?: string; readonly call: CallFunction }[];
  readonly db2: CallFunction;
  readonly now: Clock;
  /** The clock that samples are taken by; `now` where left out. */
  readonly sampleClock?: Clock;
}

const DEFAULT_RANGE = '1h';
const DAY_MS = 86_400_000;
const LONGEST_MS = 31 * DAY_MS;
const LEAST_MS = 60_000;
/** A database that has not answered by then is left out: a chart of the others is better than none. */
const ANSWER_WITHIN_MS = 5_000;

const MOMENT = { type: 'string', minLength: 10, maxLength: 40 } as const;

export const SAMPLES_QUERY = {
  type: 'object',
  properties: {
    range: {
      type: 'string',
      pattern: '^[1-9][0-9]{0,3}[mhd]$',
      description:
        'So long back from now: 15m, 1h (as when left out), 24h, 7d, 30d or any number of m, h, d.',
    },
    from: { ...MOMENT, description: 'With `to`, instead of `range`: a time as in 2026-02-24T10:00:00Z.' },
    to: { ...MOMENT, description: 'Now where left out.' },
    of: {
      type: 'string',
      minLength: 1,
      maxLength: 250,
      description: 'One of `parts`, such as "pool concert": its numbers too. A cell: its numbers alone.',
    },
  },
  additionalProperties: false,
} as const satisfies Schema;

/** "DB1", or "cell west" where there are several. */
export const intakeName = (name: string | undefined): string => (name === undefined ? 'DB1' : `cell ${name}`);

export function samplesRoutes(ports: SamplesPorts): Route[] {
  const { now, sampleClock = now } = ports;
  const kept = new Kept(now);
  return [
    {
      method: 'GET',
      path: '/admin/samples',
      handle(request) {
        const { range, from, to, of } = readQuery(request.query, SAMPLES_QUERY);
        const window = readWindow(sampleClock(), range, from, to);
        const answer = async () => jsonResponse(200, historyOf(await askAll(ports, window, of), window, of));
        // What ends now is the same for all who look, and each page adds what came since.
        return to === undefined && from === undefined ? kept.get(`${range} ${of}`, answer) : answer();
      },
    },
  ];
}

/** Two hundred pages of one range cost one question in five seconds. */
const KEPT_MS = 5_000;
const MOST_KEPT = 50;

class Kept {
  readonly #now: Clock;
  readonly #answers = new Map<string, { untilMs: number; answer: Promise<HttpResponse> }>();

  constructor(now: Clock) {
    this.#now = now;
  }

  get(key: string, ask: () => Promise<HttpResponse>): Promise<HttpResponse> {
    const known = this.#answers.get(key);
    if (known !== undefined && this.#now() < known.untilMs) return known.answer;
    const answer = ask();
    this.#answers.delete(key);
    const [oldest] = this.#answers.keys();
    if (oldest !== undefined && this.#answers.size >= MOST_KEPT) this.#answers.delete(oldest);
    this.#answers.set(key, { untilMs: this.#now() + KEPT_MS, answer });
    // A failure is told to those who waited, and forgotten.
    answer.catch(() => this.#answers.delete(key));
    return answer;
  }
}

function readWindow(nowMs: number, range?: string, from?: string, to?: string): Window {
  if (from === undefined) {
    if (to !== undefined) throw new HttpError('invalid_input', '`to` needs `from`.');
    const ms = rangeMs(range ?? DEFAULT_RANGE);
    if (ms === undefined) throw new HttpError('invalid_input', '`range` is at most 30d.');
    return windowOf(nowMs - ms, nowMs, nowMs);
  }
  if (range !== undefined) throw new HttpError('invalid_input', 'Give `range`, or `from` and `to`.');
  const [fromMs, toMs] = [Date.parse(from), to === undefined ? nowMs : Date.parse(to)];
  const isRight = toMs - fromMs >= LEAST_MS && toMs - fromMs <= LONGEST_MS;
  if (!isRight) throw new HttpError('invalid_input', '`from` is a minute to 31 days before `to`.');
  return windowOf(fromMs, toMs, nowMs);
}

function askAll({ intakes, db2 }: SamplesPorts, window: Window, of?: string): Promise<Asked[]> {
  return Promise.all([
    ...intakes.map(({ name, call }) => ask(call, { name: intakeName(name), side: 'db1' }, window, of)),
    ask(db2, { name: 'DB2', side: 'db2' }, window, of),
  ]);
}

async function ask(
  call: CallFunction,
  database: Pick<Asked, 'name' | 'side'>,
  window: Window,
  of: string | undefined,
): Promise<Asked> {
  const asking = call<{ read_samples: Remembered }>('read_samples', {
    p_from: new Date(readFromMs(window)).toISOString(),
    p_to: new Date(window.toMs).toISOString(),
    p_step_sec: window.stepSec,
    p_part: of === undefined ? null : partIn(database.name, of),
    p_now: new Date(window.nowMs).toISOString(),
  });
  try {
    const [row] = await inTime(ANSWER_WITHIN_MS, asking, () => new HttpError('database_unavailable'));
    return row === undefined ? database : { ...database, answer: row.read_samples };
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return database;
  }
}
