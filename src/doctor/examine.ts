// The doctor's round: each database by itself, then both together, then the server in front of them.

import type { CallFunction } from '#core/call_function.ts';
import { checkHealth } from '#core/console/health.ts';
import type { IntakeLook, LedgerLook } from '#core/console/sample.ts';
import type { Log } from '#core/ports.ts';
import { AdminClient } from '../admin/client.ts';
import type { Connection } from '../commands/operator.ts';
import { createDatabase } from '../db/database.ts';
import { createSecretSource } from '../webhook/secret_source.ts';
import { secretUses } from '../webhook/secret_users.ts';
import { examineChain } from './audit_chain.ts';
import { type Finding, fail, ok, skip } from './finding.ts';
import {
  judgeAddresses,
  judgeDatabase,
  judgeHealth,
  judgeHookSecret,
  judgePools,
  judgeQueue,
  judgeRefusals,
  judgeSecrets,
  judgeSides,
  judgeWebhooks,
} from './judge.ts';
import { type Look, look, messageOf } from './look.ts';

export interface Patient {
  readonly db1Url: string;
  readonly db2Url: string;
  /** Left out where no server is known. */
  readonly server?: Connection;
  /** Where the secrets of endpoints are looked for. */
  readonly env: NodeJS.ProcessEnv;
  readonly log: Log;
}

export async function examine(patient: Patient): Promise<Finding[]> {
  const [db1, db2] = await Promise.all([look('db1', patient.db1Url), look('db2', patient.db2Url)]);
  const misplaced = judgeSides(db1, db2);
  if (misplaced.length > 0) {
    const wellPlaced = (['db1', 'db2'] as const).filter((place) => ({ db1, db2 })[place].side === place);
    return [
      ...wellPlaced.flatMap((place) => judgeDatabase(place, { db1, db2 }[place])),
      ...misplaced,
      skip('health', 'see above'),
      ...(await examineServer(patient.server)),
    ];
  }
  return [
    ...judgeDatabase('db1', db1),
    ...judgeDatabase('db2', db2),
    ...(isComplete(db1) ? [judgePools(db1), judgeRefusals(db1), judgeHookSecret(db1, patient.env)] : []),
    ...(isComplete(db1) && isComplete(db2) ? await examineBoth(patient) : [skip('health', 'see above')]),
    ...(await examineServer(patient.server)),
  ];
}

function isComplete({ facts, missing }: Look): boolean {
  return facts !== undefined && missing.length === 0;
}

async function examineBoth({ db1Url, db2Url, env, log }: Patient): Promise<Finding[]> {
  const open = (url: string) => createDatabase({ url, max: 1, applicationName: 'sluice-doctor', log });
  const db1 = open(db1Url);
  const db2 = open(db2Url);
  const intake: CallFunction = (name, args) => db1.call(`public.${name}`, args);
  const ledger: CallFunction = (name, args) => db2.call(`public.${name}`, args);
  try {
    // First, so that connecting does not count as a slow answer, and a slow answer not as a wrong clock.
    const [[fromIntake], [fromLedger]] = await Promise.all([
      intake<{ live_sample: IntakeLook }>('live_sample', {}),
      ledger<{ ledger_sample: LedgerLook }>('ledger_sample', {}),
    ]);
    const health = await checkHealth({ db1: intake, db2: ledger, now: Date.now });
    const uses = await secretUses(db2, createSecretSource(env));
    return [
      ...judgeHealth(health.filter(({ kind }) => kind !== 'redis')),
      ...(fromIntake ? judgeQueue(fromIntake.live_sample) : []),
      ...(fromLedger ? judgeWebhooks(fromLedger.ledger_sample) : []),
      judgeSecrets(uses),
      await examineChain('db1', db1),
      await examineChain('db2', db2),
    ];
  } catch (error) {
    return [
      fail('health', messageOf(error), 'run `sluice doctor` again; the log of the database tells more'),
    ];
  } finally {
    await Promise.all([db1.end(), db2.end()]);
  }
}

async function examineServer(server: Connection | undefined): Promise<Finding[]> {
  if (server === undefined) {
    const found = 'SLUICE_URL and SLUICE_OPERATOR_KEY are not set';
    return [skip('server', found), skip('addresses', found)];
  }
  const api = new AdminClient(server);
  try {
    await api.get('/readyz');
    await api.get('/admin/session');
    const metrics = await api.text('/metrics');
    return [ok('server', `${server.url} is ready, and the key is right`), judgeAddresses(metrics)];
  } catch (error) {
    const todo = 'start `sluice serve`, or mend SLUICE_URL and SLUICE_ADMIN_KEY';
    return [fail('server', `${server.url}: ${messageOf(error)}`, todo), skip('addresses', 'see above')];
  }
}
