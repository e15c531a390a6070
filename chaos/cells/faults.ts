// What breaks in a cell. Each fault leaves the cell broken; Cell.heal makes it whole again.

import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { withClient } from '../../src/migrate/sql.ts';
import type { Cell } from './cell.ts';
import type { CellNode } from './node.ts';
import { until } from './servers.ts';

/** Longer than ttl, so that a silent leader is replaced. */
const SILENCE_MS = 12_000;
/** So long acknowledgements may pile up that a standby does not have. */
const LAG_MS = 1_500;
/** Long enough for a client to ask again after a cancelled wait, and shorter than a watcher needs to leave the primary. */
const CANCEL_MS = 3_500;
/** Milliseconds on a quiet machine. */
const CAUGHT_UP_MS = 30_000;
/** Seconds on a quiet machine. */
const SWITCHOVER_MS = 120_000;

/** How many: the watcher is left out, because its wait is how the server finds out that the primary is alone. */
const CANCEL_WAITS = `
  select count(pg_catalog.pg_cancel_backend(a.pid))::int as cancelled from pg_catalog.pg_stat_activity a
  where a.wait_event = 'SyncRep' and a.application_name like 'sluice-%' and a.application_name <> 'sluice-watcher'`;
const LOG_END = 'select pg_catalog.pg_current_wal_flush_lsn() as lsn';
const HAVE_ALL = `
  select count(*) = 2 as yes from pg_catalog.pg_stat_replication r where r.flush_lsn >= $1::pg_lsn`;

export interface Fault {
  readonly name: string;
  /** What happens, for people. */
  readonly about: string;
  break(cell: Cell, primary: CellNode): Promise<void>;
}

export const FAULTS: readonly Fault[] = [
  {
    name: 'kill-both',
    about: 'kill -9 of Postgres and Patroni of the primary',
    async break(cell, primary) {
      primary.killPatroni();
      primary.killPostgres();
      await leaves(cell, primary);
    },
  },
  {
    name: 'kill-postgres',
    about: 'kill -9 of the primary’s Postgres',
    async break(_cell, primary) {
      primary.killPostgres();
    },
  },
  {
    name: 'kill-patroni',
    about: 'kill -9 of the primary’s Patroni: Postgres goes on without it',
    async break(cell, primary) {
      primary.killPatroni();
      await leaves(cell, primary);
    },
  },
  {
    name: 'freeze',
    about: 'Postgres and Patroni of the primary hang for 12 s, then go on',
    async break(_cell, primary) {
      primary.freeze();
      await pause(SILENCE_MS);
      primary.thaw();
    },
  },
  {
    name: 'cut-etcd',
    about: 'the primary does not reach etcd for 12 s',
    async break(_cell, primary) {
      primary.cutFromEtcd();
      await pause(SILENCE_MS);
    },
  },
  {
    name: 'etcd-majority',
    about: 'two of three members of etcd hang for 12 s',
    async break(cell) {
      for (const member of cell.etcd.slice(1)) member.freeze();
      await pause(SILENCE_MS);
    },
  },
  {
    name: 'etcd-member',
    about: 'kill -9 of one member of etcd',
    async break(cell) {
      await cell.etcd[0]?.kill();
      await pause(LAG_MS);
    },
  },
  {
    name: 'switchover',
    about: 'an operator lets the standby lead',
    async break(cell, primary) {
      const candidate = await cell.syncStandby();
      await primary.ask('/switchover', {
        method: 'POST',
        body: JSON.stringify({ leader: primary.name, candidate: candidate.name }),
        signal: AbortSignal.timeout(SWITCHOVER_MS),
      });
    },
  },
  {
    name: 'kill-sync',
    about: 'kill -9 of the standby that commits wait for',
    async break(cell) {
      const standby = await cell.syncStandby();
      standby.killPatroni();
      standby.killPostgres();
      await pause(LAG_MS);
    },
  },
  {
    name: 'freeze-sync',
    about: 'the standby that commits wait for hangs for 12 s',
    async break(cell) {
      const standby = await cell.syncStandby();
      standby.freeze();
      await pause(SILENCE_MS);
    },
  },
  {
    name: 'lag-kill',
    about:
      'kill -9 of the primary’s Patroni, both standbys get nothing for 1.5 s, then kill -9 of its Postgres',
    async break(cell, primary) {
      await whileStandbysHang(cell, primary, () => pause(LAG_MS));
    },
  },
  {
    name: 'cancel-waits',
    about: 'the same for 3.5 s, and all waits for the standbys are cancelled meanwhile',
    async break(cell, primary) {
      await whileStandbysHang(cell, primary, () =>
        withClient(cell.urlOf(primary), async (client) => {
          const untilMs = Date.now() + CANCEL_MS;
          while (Date.now() < untilMs) await cancelWaits(client);
        }),
      );
    },
  },
];

/**
 * What the primary commits during `work` is on the primary alone, and is lost with it: the standby that is promoted has what it had
 * before. Patroni of the primary dies first. While it lives it tells etcd each second how far the primary is, and a standby that
 * is behind that is not promoted (maximum_lag_on_failover 0): the old primary would come back with all that it has.
 */
export async function whileStandbysHang(
  cell: Cell,
  primary: CellNode,
  work: () => Promise<unknown>,
): Promise<void> {
  primary.killPatroni();
  const standbys = cell.nodes.filter((node) => node !== primary);
  await withClient(cell.urlOf(primary), async (client) => {
    const { lsn } = (await client.query(LOG_END)).rows[0];
    const haveAll = async () => (await client.query(HAVE_ALL, [lsn])).rows[0].yes;
    await until(`the standbys of ${cell.side} have what etcd knows of`, haveAll, CAUGHT_UP_MS, 10);
  });
  for (const node of standbys) node.freezePostgres();
  try {
    await work();
    primary.killPostgres();
  } finally {
    for (const node of standbys) {
      node.dropUnreceived();
      node.thaw();
    }
  }
  await leaves(cell, primary);
}

/** Returns how many sessions waited. Those of the watcher go on to wait. */
export async function cancelWaits(client: pg.Client): Promise<number> {
  const { cancelled } = (await client.query(CANCEL_WAITS)).rows[0];
  await pause(20);
  return cancelled;
}

/** Waits until another node leads: a node that comes back sooner leads again. If none takes over, it is not a failover. */
async function leaves(cell: Cell, primary: CellNode): Promise<void> {
  await until(
    `another node leads ${cell.side}`,
    async () => {
      const leader = await cell.primary();
      return leader !== undefined && leader !== primary;
    },
    SWITCHOVER_MS,
  ).catch(() => undefined);
}
