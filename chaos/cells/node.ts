// One node of a cell: Patroni, and the Postgres that it keeps.

import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { LOOPBACK } from '../../src/stack/ports.ts';
import { commandLine, isAlive, waitUntilGone } from '../../src/stack/processes.ts';
import type { WireProxy } from '../proxy.ts';
import { familyOf, launch, signal } from './servers.ts';

const ANSWER_MS = 1_000;
const GONE_MS = 10_000;

/** A row of `replication` in GET /patroni. */
export interface Replica {
  readonly application_name: string;
  readonly state: string;
  readonly sync_state: string;
}

export class CellNode {
  readonly name: string;
  readonly port: number;
  readonly restPort: number;
  readonly data: string;
  readonly #configFile: string;
  readonly #proxies: readonly WireProxy[];
  #patroni: ChildProcess | undefined;

  constructor(
    name: string,
    ports: { readonly port: number; readonly restPort: number },
    dir: string,
    proxies: readonly WireProxy[],
  ) {
    this.name = name;
    this.port = ports.port;
    this.restPort = ports.restPort;
    this.data = join(dir, `pg-${name}`);
    this.#configFile = join(dir, `${name}.yml`);
    this.#proxies = proxies;
  }

  get configFile(): string {
    return this.#configFile;
  }

  startPatroni(): void {
    if (!this.hasPatroni)
      this.#patroni = launch('/usr/bin/patroni', [this.#configFile], `${this.#configFile}.log`);
  }

  get hasPatroni(): boolean {
    return this.#patroni?.pid !== undefined && isAlive(this.#patroni.pid);
  }

  async ask(path: string, more: RequestInit = {}): Promise<Response> {
    const url = `http://${LOOPBACK}:${this.restPort}${path}`;
    return fetch(url, { signal: AbortSignal.timeout(ANSWER_MS), ...more });
  }

  async says(path: string): Promise<boolean> {
    return this.ask(path).then(
      ({ status }) => status === 200,
      () => false,
    );
  }

  async replicas(): Promise<readonly Replica[]> {
    const { replication = [] } = (await (await this.ask('/patroni')).json()) as { replication?: Replica[] };
    return replication;
  }

  /** 0 where there is none. */
  get postmaster(): number {
    try {
      const pid = Number(readFileSync(join(this.data, 'postmaster.pid'), 'utf8').split('\n')[0]);
      return isAlive(pid) ? pid : 0;
    } catch {
      return 0;
    }
  }

  /** Postgres with all its sessions. */
  killPostgres(): void {
    for (const pid of familyOf(this.postmaster)) signal(pid, 'SIGKILL');
  }

  killPatroni(): void {
    signal(this.#patroni?.pid, 'SIGKILL');
  }

  freeze(): void {
    for (const pid of [this.#patroni?.pid, ...familyOf(this.postmaster)]) signal(pid, 'SIGSTOP');
  }

  /** Patroni goes on, and can promote it as soon as it is thawed. */
  freezePostgres(): void {
    for (const pid of familyOf(this.postmaster)) signal(pid, 'SIGSTOP');
  }

  /** What the primary has sent meanwhile waits in the socket of the receiver: it ends before it reads that. */
  dropUnreceived(): void {
    for (const pid of familyOf(this.postmaster))
      if (commandLine(pid).includes('walreceiver')) signal(pid, 'SIGTERM');
  }

  thaw(): void {
    for (const pid of [this.#patroni?.pid, ...familyOf(this.postmaster)]) signal(pid, 'SIGCONT');
  }

  cutFromEtcd(): void {
    for (const proxy of this.#proxies) proxy.begin({ kind: 'cut' });
  }

  joinEtcd(): void {
    for (const proxy of this.#proxies) proxy.heal();
  }

  /** Patroni first, so that it restarts nothing. SIGQUIT lets Postgres give back its shared memory. */
  async end(): Promise<void> {
    const { postmaster } = this;
    this.endNow();
    for (const pid of [this.#patroni?.pid, postmaster])
      if (pid && !(await waitUntilGone(pid, GONE_MS))) signal(pid, 'SIGKILL');
    await Promise.all(this.#proxies.map((proxy) => proxy.close()));
  }

  endNow(): void {
    this.killPatroni();
    this.thaw();
    signal(this.postmaster, 'SIGQUIT');
  }
}
