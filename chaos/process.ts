// `sluice serve` and `sluice work` as processes of their own: started as a person would, killed, stopped, stalled.

import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { familyOf, signal, until } from './cells/servers.ts';
import type { Random } from './random.ts';

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
    this.killNow();
    await this.#ended;
  }

  /** Of a command with several processes: kill -9 of one of them. Resolves when its supervisor has started another. */
  async killMember(random: Random): Promise<void> {
    const before = this.#members();
    const victim = random.pick(before);
    signal(victim, 'SIGKILL');
    await this.#untilMembers(before.length, (now) => !now.includes(victim));
  }

  /** Of a command with several processes: SIGHUP. Resolves when none of the old ones is left. */
  async reload(): Promise<void> {
    const before = this.#members();
    this.#child?.kill('SIGHUP');
    await this.#untilMembers(before.length, (now) => now.every((pid) => !before.includes(pid)));
  }

  async #untilMembers(count: number, isDone: (now: number[]) => boolean): Promise<void> {
    const test = () => {
      const now = this.#members();
      return now.length === count && isDone(now);
    };
    await until(`${this.name}: its processes`, test, READY_MS);
  }

  /** The processes of a command that has several: the supervisor has no other children. */
  #members(): number[] {
    return familyOf(this.pid).slice(1);
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

  /** With all its processes, as when the machine stands still. */
  stall(): void {
    this.#signalAll('SIGSTOP');
  }

  goOn(): void {
    this.#signalAll('SIGCONT');
  }

  /** For the way out of this process, where nothing can be waited for. */
  killNow(): void {
    this.#signalAll('SIGKILL');
  }

  /** The supervisor first: it starts no others then. */
  #signalAll(name: NodeJS.Signals): void {
    if (this.hasEnded) return;
    for (const pid of familyOf(this.pid)) signal(pid, name);
  }
}

const TAIL_CHARS = 600;

function tailOf(path: string): string {
  return readFileSync(path, 'utf8').slice(-TAIL_CHARS).trim();
}
