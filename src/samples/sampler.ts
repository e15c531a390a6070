// Samples every database every two seconds, watched or not. All servers do, and the databases keep one sample for all: who
// comes second is given the one that stands. So each server has the numbers at hand for those who watch it.

import { setTimeout as sleep } from 'node:timers/promises';
import {
  type IntakeLook,
  type LedgerLook,
  type LiveSample,
  SampleMaker,
  type Seen,
} from '#core/console/sample.ts';
import { intakeName } from '#core/console/samples_route.ts';
import { isUnavailable } from '#core/failure.ts';
import type { Clock, Log } from '#core/ports.ts';
import { type NewMark, Outages } from './outages.ts';

/** The arguments of public.take_sample. A list without members is left out: the driver would write it as an array. */
export interface TakeArguments {
  readonly p_marks?: readonly NewMark[];
  readonly p_at?: string;
}

export interface SamplerPorts {
  /** Null where another server takes the first sample at this moment. */
  takeIntake(args: TakeArguments): Promise<IntakeLook | null>;
  takeLedger(args: TakeArguments): Promise<LedgerLook | null>;
  /** The cells of the intake, where there are several. */
  readonly cells?: readonly string[];
  /** What runs here, for the mark of its deployment. */
  readonly release: string;
  /** For tests: samples are taken by this clock and not by the databases'. */
  readonly clock?: Clock;
  readonly log: Log;
}

export const SAMPLE_EVERY_MS = 2_000;
/** Behind the full two seconds, so that clocks that differ a little mean the same two seconds. */
const OFFSET_MS = 400;
/** A database that has not answered by then is shown as away; the question stays open, and is not asked twice. */
const ANSWER_WITHIN_MS = 1_500;
/** Each of several cells has a little less: the sample of those that answered is put together in time. */
export const CELL_ANSWERS_WITHIN_MS = ANSWER_WITHIN_MS - 100;

/** One question at a time to one database, with a deadline for the server that waits for the answer. */
class Watched<Look> {
  readonly #ask: (args: TakeArguments) => Promise<Look | null>;
  readonly #name: string;
  readonly #log: Log;
  #asking: { since: number } | undefined;
  #isBroken = false;

  constructor(name: string, ask: (args: TakeArguments) => Promise<Look | null>, log: Log) {
    this.#name = name;
    this.#ask = ask;
    this.#log = log;
  }

  /** True while the database answers, and with something else than a sample: that is a fault of ours and not an outage. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  async look(args: TakeArguments): Promise<Seen<Look>> {
    const started = performance.now();
    if (this.#asking !== undefined) return { ms: started - this.#asking.since };
    this.#asking = { since: started };
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), ANSWER_WITHIN_MS);
    });
    const look = await Promise.race([this.#answer(args), tooLate]);
    clearTimeout(timer);
    const ms = performance.now() - started;
    return look ? { look, ms } : { ms };
  }

  async #answer(args: TakeArguments): Promise<Look | null | undefined> {
    try {
      const look = await this.#ask(args);
      this.#isBroken = look === null;
      return look;
    } catch (error) {
      const isBroken = !isUnavailable(error) && !isCellAway(error);
      if (isBroken && !this.#isBroken) this.#log.warn(`no sample of ${this.#name}`, { cause: error });
      else this.#log.debug(`no sample of ${this.#name}`, { cause: error });
      this.#isBroken = isBroken;
      return undefined;
    } finally {
      this.#asking = undefined;
    }
  }
}

function isCellAway(error: unknown): boolean {
  return (error as { kind?: { code?: unknown } } | null)?.kind?.code === 'cell_unavailable';
}

export class Sampler {
  readonly #ports: SamplerPorts;
  readonly #now: Clock;
  readonly #intake: Watched<IntakeLook>;
  readonly #ledger: Watched<LedgerLook>;
  readonly #outages = new Outages();
  readonly #maker = new SampleMaker();
  readonly #startedMs: number;
  readonly #publish: (sample: LiveSample) => void;

  constructor(ports: SamplerPorts, publish: (sample: LiveSample) => void) {
    this.#ports = ports;
    this.#now = ports.clock ?? Date.now;
    this.#startedMs = this.#now();
    this.#publish = publish;
    this.#intake = new Watched('the intake', ports.takeIntake, ports.log);
    this.#ledger = new Watched('the ledger', ports.takeLedger, ports.log);
  }

  /** Takes one sample of each database. Never rejects. */
  async tick(): Promise<LiveSample> {
    const nowMs = this.#now();
    const args = this.#arguments(nowMs);
    const [intake, ledger] = await Promise.all([this.#intake.look(args), this.#ledger.look(args)]);
    this.#note(nowMs, intake, ledger);
    const sample = this.#maker.make(nowMs, intake, ledger);
    const told: LiveSample = {
      ...sample,
      db1: { ...sample.db1, ...this.#awaySince(sample.db1.ok, intakeName(this.#ports.cells?.[0])) },
      db2: { ...sample.db2, ...this.#awaySince(sample.db2.ok, 'DB2') },
    };
    this.#publish(told);
    return told;
  }

  #arguments(nowMs: number): TakeArguments {
    const { release, clock } = this.#ports;
    const deploy: NewMark = {
      kind: 'deploy',
      subject: release,
      began_ms: this.#startedMs,
      ended_ms: this.#startedMs,
    };
    // Told for a minute, so that a database that is away when the server starts may hear of it.
    const marks = [...this.#outages.marks, ...(nowMs - this.#startedMs < 60_000 ? [deploy] : [])];
    return {
      ...(marks.length > 0 && { p_marks: marks }),
      ...(clock && { p_at: new Date(nowMs).toISOString() }),
    };
  }

  #note(nowMs: number, intake: Seen<IntakeLook>, ledger: Seen<LedgerLook>): void {
    const { cells } = this.#ports;
    if (!this.#ledger.isBroken) this.#outages.see('DB2', ledger.look !== undefined, nowMs);
    if (this.#intake.isBroken) return;
    if (cells === undefined) this.#outages.see(intakeName(undefined), intake.look !== undefined, nowMs);
    for (const cell of cells ?? []) {
      const seen = intake.look?.cells?.find(({ name }) => name === cell);
      this.#outages.see(intakeName(cell), seen?.ok ?? false, nowMs);
    }
  }

  #awaySince(isOk: boolean, name: string): { away_since?: string } {
    const sinceMs = isOk ? undefined : this.#outages.sinceMs(name);
    return sinceMs === undefined ? {} : { away_since: new Date(sinceMs).toISOString() };
  }
}

export interface Sampling {
  stop(): Promise<void>;
}

/** Every two seconds by this server's clock, until stopped. */
export function startSampling(sampler: Sampler): Sampling {
  const stopping = new AbortController();
  const { signal } = stopping;
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      await sampler.tick();
      const untilNext = SAMPLE_EVERY_MS - ((Date.now() - OFFSET_MS) % SAMPLE_EVERY_MS);
      await sleep(untilNext, undefined, { signal }).catch(() => undefined);
    }
  };
  const running = run();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
