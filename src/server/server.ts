// The Node server: databases, doors and HTTP put together, and taken apart again in an order that answers everybody.

import { ClaimDoor } from '#core/claim.ts';
import { Door } from '#core/door.ts';
import { healthRoutes } from '#core/health.ts';
import { PoolDoor } from '#core/pool.ts';
import { buildPages, pageRoutes } from '../console/assets.ts';
import { PoolLive } from '../console/pool_live.ts';
import { createDatabase } from '../db/database.ts';
import { createLog } from '../log.ts';
import { adminRoutes } from './admin.ts';
import { HttpServer } from './http.ts';
import { openApiRoute } from './openapi_route.ts';
import { OperatorAuth } from './operator_auth.ts';
import { createDatabasePorts } from './ports.ts';
import { createTokenPorts } from './tokens.ts';
import { createWake } from './wake.ts';

export interface ServerOptions {
  /** 0 takes a free one. */
  port: number;
  /** All interfaces where left out. */
  host?: string;
  db1Url: string;
  db2Url: string;
  adminKey: string;
  jwtSecret: string;
  jwksUrl?: string;
  /** Workers in this process: told of new claims directly, where others are told by Postgres. */
  onClaimed?: () => void;
}

export interface RunningServer {
  url: string;
  port: number;
  stop(): Promise<void>;
}

/** A second claiming connection gained nothing on two cores: the batches only get smaller. */
const LANE_CONNECTIONS = 1;
const DB1_CONNECTIONS = 4;
const DB2_CONNECTIONS = 2;

export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const log = createLog();
  const tokens = createTokenPorts(options);
  const lane = createDatabase({
    url: options.db1Url,
    max: LANE_CONNECTIONS,
    applicationName: 'sluice-claims',
    log,
  });
  const db1 = createDatabase({
    url: options.db1Url,
    max: DB1_CONNECTIONS,
    applicationName: 'sluice-server',
    log,
  });
  const db2 = createDatabase({
    url: options.db2Url,
    max: DB2_CONNECTIONS,
    applicationName: 'sluice-server',
    log,
  });
  const endDatabases = (): Promise<unknown> => Promise.all([lane.end(), db1.end(), db2.end()]);

  const ports = createDatabasePorts(lane, db1);
  const wake = createWake(async () => {
    options.onClaimed?.();
    // Without the word they look by themselves a moment later.
    await db1
      .call('public.bridge_wake', {})
      .catch((error: unknown) => log.debug('workers not woken', { cause: error }));
  });
  const claims = new ClaimDoor({
    ...ports,
    ...tokens,
    claimBatch: async (requests) => {
      const outcomes = await ports.claimBatch(requests);
      if (outcomes.some(({ outcome }) => outcome === 'claimed')) wake();
      return outcomes;
    },
  });
  const pools = new PoolDoor({ ...ports, now: Date.now });
  const health = healthRoutes({
    checkDatabases: async () => {
      await Promise.all([db1.call('public.intake_ready', {}), db2.call('public.ledger_ready', {})]);
    },
    isDraining: () => http.isDraining,
  });
  const poolLive = new PoolLive({ status: (poolId) => pools.status(poolId), now: Date.now });
  const admin = adminRoutes(new OperatorAuth(options.adminKey, Date.now), {
    db1: (name, args) => db1.call(`public.${name}`, args),
    db2: (name, args) => db2.call(`public.${name}`, args),
    now: Date.now,
    log,
  });
  const programs = [...claims.routes(), ...pools.routes(), ...poolLive.routes(), ...health, ...admin];
  const pages = buildPages();
  const http = new HttpServer(
    // What a crowd asks for comes first: places are looked through in their order.
    new Door([...programs, openApiRoute(programs), ...pageRoutes(pages, log)], log),
    log,
  );

  let port: number;
  try {
    port = await http.listen(options.port, options.host);
  } catch (error) {
    await Promise.allSettled([endDatabases(), pages]);
    throw error;
  }
  const url = `http://127.0.0.1:${port}`;
  log.info('server listens', { url });

  return {
    url,
    port,
    async stop() {
      // New connections are refused and open ones told to close, while what was accepted is answered.
      const closed = http.close();
      await claims.drain();
      await closed;
      await wake.stop();
      await endDatabases();
      await Promise.allSettled([pages]);
      log.info('server stopped', { url });
    },
  };
}
