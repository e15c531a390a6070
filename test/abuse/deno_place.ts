// The table's place on Deno: the Edge Functions behind the local gateway, with PostgREST before both databases.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { demoSecrets } from '../../src/stack/env_file.ts';
import { FUNCTION_NAMES } from '../../src/stack/functions.ts';
import { isAlive } from '../../src/stack/processes.ts';
import { startWorld, type World } from '../edge/world.ts';
import { openClient } from '../server/support.ts';
import { notedPid } from '../support/dev.ts';
import { furnish } from './furnish.ts';
import type { Place } from './place.ts';

export interface DenoPlace extends Place {
  readonly world: World;
  stop(): Promise<void>;
}

export async function startDenoPlace(): Promise<DenoPlace> {
  const world = await startWorld();
  const { db1, db2, secrets } = world.stack;
  const clients = await Promise.all([db1.url, db2.url].map(openClient));
  const [intake, ledger] = clients;
  if (intake === undefined || ledger === undefined) throw new Error('two databases were to be had');
  // A thousand slots of the demo would be hashed after every row.
  await intake.query('delete from public.inventory_slots');
  const things = await furnish(intake, ledger, `${db1.gateway.url}/functions/v1/webhooks`);
  await Promise.all(clients.map((client) => client.end()));
  const pids = FUNCTION_NAMES.map((name) => notedPid(world.dir, name));
  return {
    runtime: 'deno',
    url: db1.gateway.url,
    operatorKey: db1.keys.serviceRole,
    otherTokens: [db1.keys.anon, db2.keys.serviceRole, `${db1.keys.serviceRole}${db1.keys.serviceRole}`],
    secrets: demoSecrets(secrets),
    hidden: [
      db1.keys.serviceRole,
      db2.keys.serviceRole,
      db1.url,
      db2.url,
      ...Object.values(secrets).filter((value) => typeof value === 'string'),
    ],
    things,
    databaseUrls: () => [db1.url, db2.url],
    isAlive: async () => pids.every(isAlive),
    logs: () =>
      FUNCTION_NAMES.map((name) => readFileSync(join(world.dir, 'run', `${name}.log`), 'utf8')).join(''),
    world,
    stop: () => world.stop(),
  };
}
