// The cases of db1/supabase/functions/_conformance on Node: Postgres directly, node:http. Deno runs the same ones.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import type { CallFunction } from '#core/call_function.ts';
import { type Asked, cases, run, type World } from '../../db1/supabase/functions/_conformance/bridge.ts';
import { createHook } from '../../src/bridge/hook.ts';
import { createDatabase, type Database } from '../../src/db/database.ts';
import { createLog } from '../../src/log.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { openSession, type Session } from '../support/sessions.ts';

describe('the bridge on Node does what it does on Deno', () => {
  let databases: TestDatabases;
  let pools: Database[] = [];
  let sessions: Session[] = [];
  let world: World;

  before(async () => {
    databases = await startDatabases();
    const log = createLog('error');
    const urls = [databases.db1.url, databases.db2.url];
    pools = urls.map((url) => createDatabase({ url, max: 2, applicationName: 'conformance', log }));
    sessions = await Promise.all(urls.map(openSession));
    world = createWorld(pools as [Database, Database], sessions as [Session, Session]);
  });
  after(async () => {
    await Promise.all([...pools.map((pool) => pool.end()), ...sessions.map((session) => session.close())]);
    await databases.stop();
  });

  for (const one of cases) test(one.name, () => run(one, world));
});

function createWorld([pool1, pool2]: [Database, Database], [db1, db2]: [Session, Session]): World {
  const over =
    (pool: Database): CallFunction =>
    (functionName, args) =>
      pool.call(`public.${functionName}`, args);
  return {
    db1: over(pool1),
    db2: over(pool2),
    hook: createHook(),
    async allowHost(host, isAllowed) {
      const name = isAllowed ? 'allow_hook_host' : 'disallow_hook_host';
      await pool1.call(`public.${name}`, { p_host: host, p_actor: 'conformance' });
    },
    async makePool(slots, config = {}) {
      const poolId = `node_${crypto.randomUUID()}`;
      const row = { pool_id: poolId, ...config };
      const columns = Object.keys(row).join(', ');
      await db1.rows(
        `insert into public.engine_config (${columns})
         select ${columns} from jsonb_populate_record(null::public.engine_config, $1)`,
        [row],
      );
      await db1.rows('insert into public.inventory_slots (pool_id) select $1 from generate_series(1, $2)', [
        poolId,
        slots,
      ]);
      return poolId;
    },
    async statusOf(slotId) {
      const slots = await db1.rows<{ status: string }>(
        'select status from public.inventory_slots where id = $1',
        [slotId],
      );
      return slots[0]?.status;
    },
    ticketsOf: (poolId) =>
      db2.rows('select resource_id, user_id from public.confirmed_tickets where pool_id = $1', [poolId]),
    serve,
  };
}

const serve: World['serve'] = async (answer, during) => {
  const server = createServer((request, response) => void reply(request, response, answer));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await during(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
};

async function reply(
  request: IncomingMessage,
  response: ServerResponse,
  answer: (asked: Asked) => number,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const header = (name: string): string | null => {
    const value = request.headers[name];
    return typeof value === 'string' ? value : null;
  };
  response.statusCode = answer({
    path: request.url ?? '',
    key: header('x-idempotency-key'),
    claimId: header('x-claim-id'),
    body: JSON.parse(Buffer.concat(chunks).toString()),
  });
  response.end();
}
