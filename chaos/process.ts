// `sluice serve` and `sluice work` as processes of their own: started as a person would, killed, stopped, stalled.

import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const SLUICE = fileURLToPath(new URL('../bin/sluice.js', import.meta.url));
const SKEWED_CLOCK = new URL('./faults/skewed_clock.js', import.meta.url).href;
/** On a machine with two cores that does ten other things, Node takes seconds to start. */
const READY_MS = 120_000;
/** The longest call of ours is cut off after half a minute; what takes longer than that to stop hangs. */
const STOP_MS = 60_000;
const POLL_MS = 25;

export const SERVER_READY = /^Sluice listens on \S+:(\d+)\n/m;
export const WORKER_READY = /"message":"workers started"/;

export type ProcessOptions = {
  name: string;
  args: string[];
  env: Record<string, string>;
  /** What its output says when it is ready; the first group is the port on which it listens, where there is one. */
  ready: RegExp;
  logDir: string;
  /** Of another checkout; ours where it is left out. */
  program?: string;
  /** Called when it ended by itself, or did not end when asked to. */
  onFault(what: string): void;
};

/** What one incarnation wrote, and how wrong its clock was. */
export type LogFile = { path: string; skewMs: number };

export class Process {
  readonly #options: ProcessOptions;
  readonly logs: LogFile[] = [];
  #child: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();
  #isWanted = false;
  #port = 0;

  constructor(options: ProcessOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.name;
  }

  /** Of the present incarnation; 0 before the first. */
  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** Where it listens now: another port after each start. 0, a port without a listener, while it does not. */
  get port(): number {
    return this.#port;
  }

  async start(skewMs = 0): Promise<void> {
    const { name, args, env, ready, logDir, onFault, program = SLUICE } = this.#options;
    const path = join(logDir, `${name}.${this.logs.length + 1}.log`);
    this.logs.push({ path, skewMs });
    const log = openSync(path, 'w', 0o600);
    const skewed = skewMs === 0 ? [] : ['--import', SKEWED_CLOCK];
    const child = spawn(process.execPath, [...skewed, program, ...args], {
      cwd: '/',
      env: { PATH: process.env.PATH ?? '', ...env, ...(skewMs !== 0 && { CHAOS_SKEW_MS: String(skewMs) }) },
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    this.#child = child;
    this.#isWanted = true;
    let hasEnded = false;
    this.#ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        hasEnded = true;
        if (this.#child === child) this.#port = 0;
        if (this.#isWanted && this.#child === child)
          onFault(`${name} ended by itself with ${code ?? signal}: ${tailOf(path)}`);
        resolve();
      });
    });
    const deadline = Date.now() + READY_MS;
    for (;;) {
      const said = ready.exec(readFileSync(path, 'utf8'));
      if (said !== null) {
        if (!hasEnded) this.#port = Number(said[1] ?? 0);
        return;
      }
      // A fault killed or stopped it while it started; the same fault starts it again.
      if (!this.#isWanted) return;
      if (hasEnded) throw new Error(`${name} ended while it started: ${tailOf(path)}`);
      if (Date.now() > deadline) throw new Error(`${name} does not get ready: ${tailOf(path)}`);
      await pause(POLL_MS);
    }
  }

  async kill(): Promise<void> {
    this.#isWanted = false;
    this.#child?.kill('SIGKILL');
    await this.#ended;
  }

  /** SIGTERM; one that does not end in time is a finding, and is killed. */
  async stop(): Promise<void> {
    this.#isWanted = false;
    this.#child?.kill('SIGTERM');
    const patience = new AbortController();
    const outcome = await Promise.race([
      this.#ended.then(() => 'ended' as const),
      pause(STOP_MS, 'late' as const, { signal: patience.signal }),
    ]);
    patience.abort();
    if (outcome === 'ended') return;
    this.#options.onFault(`${this.name} did not stop within ${STOP_MS / 1000} s of SIGTERM`);
    await this.kill();
  }

  get hasEnded(): boolean {
    return this.#child === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  stall(): void {
    this.#child?.kill('SIGSTOP');
  }

  goOn(): void {
    this.#child?.kill('SIGCONT');
  }

  /** For the way out of this process, where nothing can be waited for. */
  killNow(): void {
    this.#child?.kill('SIGKILL');
  }
}

const TAIL_CHARS = 600;

function tailOf(path: string): string {
  return readFileSync(path, 'utf8').slice(-TAIL_CHARS).trim();
}
