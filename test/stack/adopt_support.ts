// Two databases of a role that is not a superuser, on a Postgres of our own or on Debian's, and the command that prepares them.

import { type SpawnSyncReturns, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { withClient } from '../../src/migrate/sql.ts';
import { startCluster } from '../../src/stack/postgres.ts';
import { giveToServer } from '../../src/stack/server_user.ts';
import { prepareDebian, startDebianCluster } from '../pgtap/debian_cluster.ts';
import { PROJECT } from '../support/dev.ts';

const SLUICE = join(PROJECT, 'bin', 'sluice.js');
const REQUIREMENT = readFileSync(join(PROJECT, 'test', 'fixtures', 'requirement_ledger.sql'), 'utf8');

export interface Server {
  url: string;
  stop(): Promise<void>;
}

export const SERVERS: Readonly<Record<string, () => Promise<Server | string>>> = {
  'Postgres 18': startEmbedded,
  'Postgres 15': startDebian,
};

async function startEmbedded(): Promise<Server> {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-adopt-')));
  giveToServer(dir);
  const cluster = await startCluster({ dir: join(dir, 'one'), password: 'test', settings: { fsync: 'off' } });
  return {
    url: cluster.url,
    async stop() {
      await cluster.stop('immediate');
      rmSync(dir, { recursive: true });
    },
  };
}

/** A server of Debian's Postgres, or the reason why it is missing. */
async function startDebian(): Promise<Server | string> {
  const reason = await prepareDebian();
  if (reason !== undefined) return reason;
  const cluster = await startDebianCluster(false);
  return { url: cluster.url, stop: async () => cluster.stop() };
}

/** A pair of databases that belong to `owner`, who may log in and nothing else. */
export class OwnPair {
  readonly #server: Server;
  readonly db1: string;
  readonly db2: string;

  private constructor(server: Server, db1: string, db2: string) {
    this.#server = server;
    this.db1 = db1;
    this.db2 = db2;
  }

  static async make(server: Server, name: string): Promise<OwnPair> {
    await withClient(server.url, async (client) => {
      await client.query(
        `do $$ begin create role owner login password 'test'; exception when duplicate_object then null; end $$`,
      );
      for (const side of ['intake', 'ledger'])
        await client.query(`create database ${name}_${side} owner owner`);
    });
    const urlOf = (side: string) => {
      const url = new URL(server.url);
      [url.username, url.password, url.pathname] = ['owner', 'test', `/${name}_${side}`];
      return url.href;
    };
    return new OwnPair(server, urlOf('intake'), urlOf('ledger'));
  }

  /** As a superuser, in the database that the server has for that. */
  asSuperuser<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
    return withClient(this.#server.url, work);
  }

  get #env(): NodeJS.ProcessEnv {
    return { ...process.env, DB1_URL: this.db1, DB2_URL: this.db2 };
  }

  migrate(...args: string[]): SpawnSyncReturns<string> {
    return spawnSync(process.execPath, [SLUICE, 'migrate', ...args], { encoding: 'utf8', env: this.#env });
  }

  /** Killed as soon as it has said this. */
  async migrateUntil(said: RegExp, ...args: string[]): Promise<void> {
    const child = spawn(process.execPath, [SLUICE, 'migrate', ...args], { env: this.#env });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (said.test(output)) child.kill('SIGKILL');
    });
    const signal = await new Promise((resolve) => child.once('exit', (_, by) => resolve(by)));
    if (signal !== 'SIGKILL') throw new Error(`it ended by itself:\n${output}`);
  }

  /** Every object and column of a database, with rights, as one value. */
  async shapeOf(url: string): Promise<string> {
    return withClient(url, async (client) => {
      const { rows } = await client.query(`
        select (select string_agg(n.nspname || coalesce(n.nspacl::text, ''), ',' order by n.oid) from pg_namespace n
            where n.nspname !~ '^pg_(toast|temp)') as schemas,
          (select string_agg(c.oid::regclass || coalesce(c.relacl::text, ''), ',' order by c.oid) from pg_class c) as relations,
          (select string_agg(a.attrelid || a.attname || a.atttypid || a.attnotnull, ',' order by a.attrelid, a.attnum) from pg_attribute a) as columns,
          (select string_agg(p.oid::regprocedure || coalesce(p.proacl::text, ''), ',' order by p.oid) from pg_proc p) as routines,
          (select string_agg(r.rolname, ',' order by r.oid) from pg_roles r) as roles`);
      return JSON.stringify(rows[0]);
    });
  }
}

export const one = async (
  url: string,
  sql: string,
  values: unknown[] = [],
): Promise<Record<string, unknown>> =>
  withClient(url, async (client) => (await client.query(sql, values)).rows[0]);

/** The requirement's ledger with this many events and calls, some of them twice. */
export async function fillAsRequired(url: string, rows: number): Promise<void> {
  await withClient(url, async (client) => {
    await client.query(REQUIREMENT);
    await client.query(
      `insert into webhook_events (webhook_id, event_id, payload, status, attempts, received_at)
       select ('00000000-0000-4000-8000-00000000000' || n % 3)::uuid, 'evt_' || n / 3, jsonb_build_object('n', n),
         (array['success', 'success', 'pending', 'dead_letter', 'processing', 'failed'])[1 + n % 6]::webhook_event_status, n % 5,
         timestamptz '2026-01-01' + n * interval '1 second'
       from generate_series(1, $1) n`,
      [rows],
    );
    await client.query(
      `insert into webhook_events (webhook_id, event_id, payload)
       select webhook_id, event_id, '{"again": true}' from webhook_events where event_id in ('evt_10', 'evt_20')`,
    );
    await client.query(
      `insert into calls (site_id, phone, signature_hash)
       select 'clinic', '+1' || n, case when n % 2 = 0 then md5(n::text) end from generate_series(1, $1) n`,
      [rows],
    );
    await client.query(
      `insert into calls (site_id, phone, signature_hash) select site_id, phone, signature_hash from calls where id in (2, 4, 5)`,
    );
    await client.query(
      `insert into audit.audit_logs (table_name, operation, row_data, changed_by)
       values ('clinics', 'update', '{"id": 7}', '00000000-0000-4000-8000-000000000009'), ('clinics', 'insert', null, null)`,
    );
    await client.query(`insert into webhook_side_effects (provider, event_id) values ('stripe', 'evt_1')`);
    await client.query(
      `insert into credit_ledger (user_id, amount, provider, event_id, payment_intent)
       select 'user ' || p.n % 100, case when c.n % 10 = 0 then -300 else 1000 end, 'stripe', 'evt_credit_' || c.n, 'pi_' || p.n
       from generate_series(1, $1) as c (n) cross join lateral (select case when c.n % 10 = 0 then c.n - 1 else c.n end) as p (n)`,
      [rows],
    );
  });
}

/** A payment of 1000, of which 400 went away and came back, and then 100 went away. */
export async function creditMoneyBack(url: string): Promise<void> {
  await withClient(url, (client) =>
    client.query(
      `insert into credit_ledger (user_id, amount, provider, event_id, payment_intent, created_at)
       select 'back', amount, 'stripe', 'evt_back_' || n, 'pi_back', timestamptz '2025-12-31' + n * interval '1 day'
       from unnest('{1000,-400,400,-100}'::int[]) with ordinality as c (amount, n)`,
    ),
  );
}

/** What the plan asks for. */
export async function nameCreditedPayments(url: string): Promise<void> {
  await withClient(url, async (client) => {
    await client.query('alter table credit_ledger add object_id text');
    await client.query('update credit_ledger set object_id = payment_intent');
  });
}

export async function deleteDuplicates(url: string): Promise<void> {
  await withClient(url, async (client) => {
    await client.query(`delete from webhook_events where payload ? 'again'`);
    await client.query(
      `delete from calls c using calls k where k.id < c.id and k.signature_hash = c.signature_hash`,
    );
  });
}
