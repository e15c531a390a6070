// Claims at a fixed pace over many connections, whatever became of the earlier ones. Each counts from the moment it was due: a
// server that stands still for a second delays all claims of that second.

import { connect, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { HEAD_END, statusIn } from './connections.ts';
import { quantile } from './stats.ts';

export type OpenLoopOrder = {
  port: number;
  path: string;
  connections: number;
  perSec: number;
  seconds: number;
  /** How long an answer is waited for when the last claim was due. */
  patienceMs: number;
};

export type OpenLoopReport = {
  /** Answered 201. */
  claims: number;
  /** Answered otherwise. */
  refused: number;
  /** Without an answer; they count with the time until they were given up. */
  broken: number;
  /** Until the last answer, at least as long as asked for. */
  seconds: number;
  p50Ms: number;
  p99Ms: number;
};

/** The program that takes orders. */
export const OPEN_LOOP_CLIENT = fileURLToPath(new URL('./open_loop_client.ts', import.meta.url));

type Connection = { socket: Socket; text: string; dueMs: number | undefined };

const CREATED = 201;
const MS_PER_SEC = 1_000;
/** Claims that are due within it leave together. */
const TICK_MS = 1;

export class OpenLoop {
  /** In turn, so that all connections are used. */
  #free: Connection[] = [];
  readonly #open = new Set<Connection>();
  readonly #prefix: string;
  #port = 0;
  #count = 0;
  #run: Run | undefined;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** Connections are made before its clock starts, and stay for the next order to the same port. */
  async run(order: OpenLoopOrder): Promise<OpenLoopReport> {
    if (order.port !== this.#port) this.close();
    this.#port = order.port;
    const missing = order.connections - this.#open.size;
    await Promise.all(Array.from({ length: Math.max(0, missing) }, () => this.#connect(order.port)));
    const run = new Run(order);
    this.#run = run;
    while (!run.isOver(performance.now())) {
      run.becomeDue(performance.now());
      this.#send(run, order.path);
      await new Promise((resolve) => setTimeout(resolve, TICK_MS));
    }
    this.#run = undefined;
    for (const connection of this.#open)
      if (connection.dueMs !== undefined) {
        run.end(connection.dueMs, undefined);
        connection.dueMs = undefined;
        this.#drop(connection);
      }
    return run.report();
  }

  close(): void {
    for (const connection of this.#open) this.#drop(connection);
  }

  async #connect(port: number): Promise<void> {
    const socket = connect(port, '127.0.0.1').setEncoding('latin1').setNoDelay(true);
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    const connection: Connection = { socket, text: '', dueMs: undefined };
    socket
      .on('data', (chunk: string) => this.#answered(connection, chunk))
      .on('error', () => undefined)
      .once('close', () => this.#lost(connection, port));
    this.#open.add(connection);
    this.#free.push(connection);
  }

  #send(run: Run, path: string): void {
    while (this.#free.length > 0) {
      const dueMs = run.takeDue();
      if (dueMs === undefined) return;
      const connection = this.#free.shift() as Connection;
      connection.dueMs = dueMs;
      connection.text = '';
      connection.socket.write(this.#request(path));
    }
  }

  #request(path: string): string {
    const id = `${this.#prefix}_${this.#count++}`;
    const body = `{"user_id":"user_${id}","request_id":"order_${id}"}`;
    return `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: ${body.length}${HEAD_END}${body}`;
  }

  #answered(connection: Connection, chunk: string): void {
    connection.text += chunk;
    const status = statusIn(connection.text);
    if (status === undefined || connection.dueMs === undefined) return;
    this.#run?.end(connection.dueMs, status);
    connection.dueMs = undefined;
    this.#free.push(connection);
  }

  /** In the middle of a run another one takes its place. */
  #lost(connection: Connection, port: number): void {
    if (!this.#open.delete(connection)) return;
    this.#free = this.#free.filter((one) => one !== connection);
    if (connection.dueMs !== undefined) this.#run?.end(connection.dueMs, undefined);
    if (this.#run !== undefined) this.#connect(port).catch(() => undefined);
  }

  #drop(connection: Connection): void {
    this.#open.delete(connection);
    this.#free = this.#free.filter((one) => one !== connection);
    connection.socket.destroy();
  }
}

/** The claims of one order: which are due, and what became of each. */
class Run {
  readonly #order: OpenLoopOrder;
  readonly #startMs = performance.now();
  readonly #total: number;
  readonly #tookMs: number[] = [];
  #due: number[] = [];
  #taken = 0;
  #next = 0;
  #claims = 0;
  #refused = 0;
  #broken = 0;
  #lastMs = 0;

  constructor(order: OpenLoopOrder) {
    this.#order = order;
    this.#total = Math.round(order.perSec * order.seconds);
  }

  becomeDue(nowMs: number): void {
    for (; this.#next < this.#total; this.#next++) {
      const dueMs = this.#startMs + (this.#next * MS_PER_SEC) / this.#order.perSec;
      if (dueMs > nowMs) return;
      this.#due.push(dueMs);
    }
  }

  takeDue(): number | undefined {
    return this.#due[this.#taken] === undefined ? undefined : this.#due[this.#taken++];
  }

  end(dueMs: number, status: number | undefined): void {
    this.#lastMs = performance.now();
    this.#tookMs.push(this.#lastMs - dueMs);
    if (status === CREATED) this.#claims++;
    else if (status === undefined) this.#broken++;
    else this.#refused++;
  }

  isOver(nowMs: number): boolean {
    const { seconds, patienceMs } = this.#order;
    return this.#tookMs.length === this.#total || nowMs > this.#startMs + seconds * MS_PER_SEC + patienceMs;
  }

  report(): OpenLoopReport {
    for (let dueMs = this.takeDue(); dueMs !== undefined; dueMs = this.takeDue()) this.end(dueMs, undefined);
    const sorted = this.#tookMs.sort((a, b) => a - b);
    return {
      claims: this.#claims,
      refused: this.#refused,
      broken: this.#broken,
      seconds: Math.max(this.#order.seconds, (this.#lastMs - this.#startMs) / MS_PER_SEC),
      p50Ms: quantile(sorted, 0.5),
      p99Ms: quantile(sorted, 0.99),
    };
  }
}
