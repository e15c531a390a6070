// A cell: one logical Postgres of three nodes under Patroni, with three members of etcd, in a temporary folder.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { migrate } from '../../src/migrate/migrate.ts';
import { applyPlatform } from '../../src/migrate/platform/platform.ts';
import { withClient } from '../../src/migrate/sql.ts';
import { LOOPBACK } from '../../src/stack/ports.ts';
import { giveToServer } from '../../src/stack/server_user.ts';
import { cleanUpOnExit } from '../../test/support/databases.ts';
import { startProxy } from '../proxy.ts';
import { createRandom } from '../random.ts';
import { type EtcdMember, startEtcd } from './etcd.ts';
import { CellNode } from './node.ts';
import { CELL_PASSWORD, patroniConfig, SHARED_SETTINGS } from './patroni_config.ts';
import { freePorts, until } from './servers.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** A cell takes 8 to 20 s on an idle machine. */
const READY_MS = 180_000;
/** The real pg_cron on the intake: jobs follow the primary by themselves. */
const CRON = {
  shared_preload_libraries: 'pg_cron',
  'cron.database_name': 'postgres',
  'cron.use_background_workers': 'on',
};

export interface CellOptions {
  readonly side: 'db1' | 'db2';
  /** Instead of those of SHARED_SETTINGS: for controls that lose data. */
  readonly settings?: Readonly<Record<string, number | boolean>>;
}

export class Cell {
  readonly side: 'db1' | 'db2';
  readonly etcd: readonly EtcdMember[];
  readonly nodes: readonly CellNode[];
  readonly #dir: string;
  readonly #isSynchronous: boolean;
  readonly #forget: () => void;

  private constructor(
    options: CellOptions,
    dir: string,
    etcd: readonly EtcdMember[],
    nodes: readonly CellNode[],
  ) {
    this.side = options.side;
    this.etcd = etcd;
    this.nodes = nodes;
    this.#dir = dir;
    this.#isSynchronous = { ...SHARED_SETTINGS, ...options.settings }.synchronous_mode === true;
    this.#forget = cleanUpOnExit(() => this.#endNow());
  }

  /** Started, in step, and with our schema. */
  static async start(options: CellOptions): Promise<Cell> {
    const dir = mkdtempSync(join(tmpdir(), `sluice-cell-${options.side}-`));
    giveToServer(dir);
    const etcd = await startEtcd(dir);
    const cell = new Cell(options, dir, etcd, await makeNodes(options, dir, etcd));
    try {
      for (const node of cell.nodes) node.startPatroni();
      await cell.ready();
      await withClient(cell.url, async (client) => {
        await applyPlatform(client, { authenticatorPassword: CELL_PASSWORD, defaults: 'new' });
        await migrate(client, join(ROOT, options.side));
      });
      return cell;
    } catch (error) {
      await cell.remove();
      throw error;
    }
  }

  /** All three hosts. */
  get url(): string {
    return this.urlOf(...this.nodes);
  }

  urlOf(...nodes: readonly CellNode[]): string {
    const hosts = nodes.map(({ port }) => `${LOOPBACK}:${port}`);
    return `postgres://postgres:${CELL_PASSWORD}@${hosts.join(',')}/postgres`;
  }

  get patroniUrls(): string {
    return this.nodes.map(({ restPort }) => `http://${LOOPBACK}:${restPort}`).join(',');
  }

  async primary(): Promise<CellNode | undefined> {
    const answers = await Promise.all(this.nodes.map((node) => node.says('/primary')));
    return this.nodes[answers.indexOf(true)];
  }

  /**
   * Not by the members' own word in etcd, which is old: the primary streams to both others, one of them in step, and both answer
   * for themselves. Returns the primary.
   */
  ready(forMs = READY_MS): Promise<CellNode> {
    return until(
      `the cell of ${this.side} is whole`,
      async () => {
        const primary = await this.primary();
        if (primary === undefined) return undefined;
        const streaming = (await primary.replicas()).filter(({ state }) => state === 'streaming');
        const others = this.nodes.filter((node) => node !== primary);
        const areReplicas = await Promise.all(others.map((node) => node.says('/replica')));
        const isInStep = !this.#isSynchronous || streaming.some(({ sync_state }) => sync_state === 'sync');
        return streaming.length === 2 && isInStep && areReplicas.every(Boolean) ? primary : undefined;
      },
      forMs,
      200,
    );
  }

  /** The standby that commits wait for. Patroni may be about to name another one: then it is asked for again. */
  syncStandby(): Promise<CellNode> {
    return until(
      `a standby of ${this.side} is in step`,
      async () => {
        const replicas = await (await this.ready()).replicas();
        const inStep = replicas.find(({ sync_state }) => sync_state === 'sync');
        return this.nodes.find(({ name }) => name === inStep?.application_name);
      },
      READY_MS,
      200,
    );
  }

  /** Starts what is down, wakes what hangs, and waits until all three are in step again. */
  async heal(): Promise<CellNode> {
    for (const member of this.etcd) member.thaw();
    for (const node of this.nodes) {
      node.joinEtcd();
      node.thaw();
      node.startPatroni();
    }
    for (const member of this.etcd) if (!(await member.isHealthy().catch(() => false))) member.start();
    try {
      return await this.ready(READY_MS / 2);
    } catch {
      // A standby that was killed while it rewound can stay in `starting`; only a new copy cures it.
      await this.#reinitialize();
      return this.ready();
    }
  }

  async #reinitialize(): Promise<void> {
    const primary = await this.primary();
    for (const node of this.nodes)
      if (node !== primary && !(await node.says('/replica')))
        await node.ask('/reinitialize', { method: 'POST', body: '{"force": true}' }).catch(() => undefined);
  }

  async remove(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.end()));
    await Promise.all(this.etcd.map((member) => member.kill()));
    rmSync(this.#dir, { recursive: true, force: true, maxRetries: 5 });
    this.#forget();
  }

  #endNow(): void {
    for (const node of this.nodes) node.endNow();
    for (const member of this.etcd) member.killNow();
    // Servers that are ending still write: the folder is not empty until they have ended.
    rmSync(this.#dir, { recursive: true, force: true, maxRetries: 20 });
  }
}

async function makeNodes(
  { side, settings }: CellOptions,
  dir: string,
  etcd: readonly EtcdMember[],
): Promise<CellNode[]> {
  const ports = await freePorts(6);
  return Promise.all(
    [0, 1, 2].map(async (index) => {
      const random = createRandom(index, side);
      const proxies = await Promise.all(etcd.map((member) => startProxy(() => member.port, random)));
      const [port = 0, restPort = 0] = ports.slice(2 * index);
      const node = new CellNode(`p${index + 1}`, { port, restPort }, dir, proxies);
      const config = patroniConfig({
        scope: side,
        name: node.name,
        restPort,
        port,
        data: node.data,
        etcdPorts: proxies.map((proxy) => proxy.port),
        settings: { ...SHARED_SETTINGS, ...settings },
        parameters: side === 'db1' ? CRON : {},
      });
      writeFileSync(node.configFile, config, { mode: 0o600 });
      giveToServer(node.configFile);
      return node;
    }),
  );
}
