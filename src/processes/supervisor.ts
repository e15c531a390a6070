// Keeps the processes of one command running: starts them, starts a dead one again, restarts them one at a time. They share one
// listening port by node:cluster: this process accepts connections and hands them out in turn, and never reads one.

import cluster, { type Worker } from 'node:cluster';
import { EventEmitter, on } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '#core/ports.ts';
import { StackError } from '../failure.ts';
import { CALM_MS, pauseAfter } from '../restart_pause.ts';
import type { LimitSettings } from '../server/address_limits.ts';
import { Connections } from './connections.ts';
import type { StopOrder } from './member.ts';
import type { FromMember, ToMember } from './messages.ts';
import { PART_VARIABLE, type Part, textOfPart } from './part.ts';
import { type Peer, Switchboard } from './switchboard.ts';

/**
 * From its first stop order until a member is killed: one that hangs would keep a stop or a restart waiting for ever. A server may take
 * 13 s to answer what it has under way and to come to rest, and a worker's call that is under way up to 35 s.
 */
const STOP_WITHIN_MS = 60_000;

/** One process of the command. */
export interface Order {
  /** What people call it, such as "server 2". */
  readonly name: string;
  /** The words after `sluice`. */
  readonly args: readonly string[];
  /** Beside what this process has; undefined takes a variable away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly part: Part;
  /** It listens on SLUICE_PORT, which all that do share. */
  readonly isServer: boolean;
}

export interface SupervisorOptions {
  /** The first is started alone: where it cannot start, neither could the others. */
  readonly orders: readonly Order[];
  readonly limits: LimitSettings;
  readonly log: Log;
  /** How long a member that is told to stop has; STOP_WITHIN_MS where none is given. */
  readonly stopWithinMs?: number;
}

/** The first process ended before it listened, and has said why. */
export class NotStarted extends StackError {
  readonly code: number;

  constructor(name: string, code: number) {
    super(`${name} ended with ${code} while it started`, 'its own lines say why');
    this.code = code;
  }
}

/** How far a member is. */
type Stage = 'listening' | 'ready';

interface Seat {
  readonly order: Order;
  child: Child | undefined;
  /** Deaths in a row. */
  deaths: number;
  /** Hears the stages of its children, each with the child. */
  readonly stages: EventEmitter;
}

/** One incarnation of a member. */
interface Child extends Peer {
  readonly worker: Worker;
  readonly startedMs: number;
  /** It has loaded, and hears what it is told. */
  hears: boolean;
  /** What it was told, or is when it hears. */
  order: StopOrder | undefined;
  /** Kills it where it has not ended in time after its first order. */
  deadline: NodeJS.Timeout | undefined;
  readonly startDeadline: () => NodeJS.Timeout;
  readonly reached: Set<Stage>;
  /** Resolves with its exit code; 1 where a signal ended it. */
  readonly exited: Promise<number>;
}

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #switchboard: Switchboard;
  readonly #connections = new Connections();
  readonly #seats: readonly Seat[];
  readonly #stopping = new AbortController();
  #keeping: Promise<void>[] = [];
  #restarting: Promise<void> | undefined;
  #isRestartWanted = false;
  #url: string | undefined;
  #port: number | undefined;
  /** The port was any free one, and all servers died: those that follow take the same one. */
  #isPortKept = false;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#switchboard = new Switchboard(options.limits);
    this.#seats = options.orders.map((order) => ({
      ...{ order, child: undefined, deaths: 0 },
      stages: new EventEmitter(),
    }));
    cluster.schedulingPolicy = cluster.SCHED_RR;
  }

  /** Resolves when all members listen, or this was stopped meanwhile; with the address of the servers. Throws NotStarted. */
  async start(): Promise<string | undefined> {
    const [first, ...others] = this.#seats;
    if (first === undefined) return undefined;
    const child = this.#launch(first);
    const code = await Promise.race([this.#until(first, 'listening'), child.exited]);
    if (this.#isStopping) {
      await child.exited;
      return undefined;
    }
    if (code !== undefined) {
      this.#stopping.abort();
      throw new NotStarted(first.order.name, code);
    }
    this.#keeping = [this.#keep(first, child), ...others.map((seat) => this.#keep(seat))];
    await Promise.all(others.map((seat) => this.#until(seat, 'listening')));
    return this.#url;
  }

  /** Resolves when all members have ended after stop(). */
  async ended(): Promise<void> {
    await Promise.all(this.#keeping);
  }

  /** One at a time, each ready before the next is stopped. Asked for again meanwhile, it goes round once more. */
  restart(): Promise<void> {
    this.#isRestartWanted = true;
    this.#restarting ??= this.#restartWhileWanted().finally(() => {
      this.#restarting = undefined;
    });
    return this.#restarting;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const { child } of this.#seats) if (child) stop(child, { isRestart: false });
    await this.ended();
  }

  /** At once: what members hold comes back by itself. */
  kill(): void {
    this.#stopping.abort();
    for (const { child } of this.#seats) child?.worker.process.kill('SIGKILL');
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  async #restartWhileWanted(): Promise<void> {
    const { log } = this.#options;
    while (this.#isRestartWanted && !this.#isStopping) {
      this.#isRestartWanted = false;
      for (const seat of this.#seats) {
        const { child: old } = seat;
        if (old !== undefined) stop(old, { isRestart: true });
        await this.#until(seat, 'ready', old);
        if (this.#isStopping) return;
        log.info('a process was restarted', { member: seat.order.name });
      }
      log.info('all processes were restarted', { processes: this.#seats.length });
    }
  }

  /** Keeps the seat taken until stop(). */
  async #keep(seat: Seat, launched?: Child): Promise<void> {
    const { signal } = this.#stopping;
    for (let child = launched ?? this.#launch(seat); ; child = this.#launch(seat)) {
      const code = await child.exited;
      if (signal.aborted) return;
      if (child.order?.isRestart) continue;
      if (performance.now() - child.startedMs > CALM_MS) seat.deaths = 0;
      const pauseMs = pauseAfter(++seat.deaths);
      const { signalCode } = child.worker.process;
      this.#options.log.warn('a process ended, and is started again', {
        ...{ member: seat.order.name, pid: child.worker.process.pid, code, signal: signalCode },
        pause_ms: pauseMs,
      });
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
    }
  }

  /** Until a child of the seat, and not `old`, is that far; or stop(). */
  async #until({ child, stages }: Seat, stage: Stage, old?: Child): Promise<undefined> {
    if (child !== old && child?.reached.has(stage)) return;
    try {
      for await (const [reacher] of on(stages, stage, { signal: this.#stopping.signal }))
        if (reacher !== old) return;
    } catch (error) {
      if (!this.#isStopping) throw error;
    }
  }

  #launch(seat: Seat): Child {
    const { order } = seat;
    cluster.setupPrimary({ args: [...order.args] });
    const worker = cluster.fork({
      ...order.env,
      ...(order.isServer && this.#keptPort()),
      [PART_VARIABLE]: textOfPart(order.part),
    });
    const exited = new Promise<number>((resolve) =>
      worker.once('exit', (code) => {
        // Its last words may still be on their way.
        if (worker.isConnected()) worker.once('disconnect', () => resolve(code ?? 1));
        else resolve(code ?? 1);
      }),
    );
    const child: Child = {
      ...{ worker, exited, startedMs: performance.now(), reached: new Set<Stage>() },
      ...{ hears: false, order: undefined, deadline: undefined },
      startDeadline: () => this.#startDeadline(order, worker),
      send: (message: ToMember) => {
        // A channel that has just broken is that of a child that has just ended.
        if (worker.isConnected()) worker.send(message, () => undefined);
      },
    };
    seat.child = child;
    this.#connections.watch(worker);
    worker.on('message', (message: FromMember) => this.#hear(seat, child, message));
    worker.on('error', (cause) => this.#options.log.warn('a process', { member: order.name, cause }));
    void exited.then(() => {
      clearTimeout(child.deadline);
      this.#switchboard.remove(child);
      this.#connections.drop(worker);
      if (seat.child === child) seat.child = undefined;
    });
    return child;
  }

  /** What it holds comes back by itself, as leases run out. While it lives, it keeps this process alive: the timer need not. */
  #startDeadline({ name }: Order, { process: child }: Worker): NodeJS.Timeout {
    const { log, stopWithinMs = STOP_WITHIN_MS } = this.#options;
    return setTimeout(() => {
      const fields = { member: name, pid: child.pid, after_ms: stopWithinMs };
      log.warn('a process did not end in time, and is killed', fields);
      child.kill('SIGKILL');
    }, stopWithinMs).unref();
  }

  #hear({ stages }: Seat, child: Child, message: FromMember): void {
    if (message.kind === 'hears') {
      child.hears = true;
      this.#switchboard.add(child);
      if (child.order !== undefined) stop(child, child.order);
      return;
    }
    if (message.kind !== 'listening' && message.kind !== 'ready') {
      this.#switchboard.hear(child, message);
      return;
    }
    if (message.kind === 'listening') {
      this.#url ??= message.url;
      this.#port ??= message.port;
    }
    child.reached.add(message.kind);
    stages.emit(message.kind, child);
  }

  /** While one server lives, its port is open under the number that all were told. */
  #keptPort(): { SLUICE_PORT: string } | undefined {
    const isAnyAlive = this.#seats.some(({ order, child }) => order.isServer && child !== undefined);
    if (!isAnyAlive && this.#port !== undefined) this.#isPortKept = true;
    return this.#isPortKept ? { SLUICE_PORT: String(this.#port) } : undefined;
  }
}

/** One that still loads is told when it hears. It goes by the first order it hears, so a second one gives it no more time. */
function stop(child: Child, order: StopOrder): void {
  child.order = order;
  child.deadline ??= child.startDeadline();
  if (child.hears) child.send({ kind: 'stop', ...order });
}
