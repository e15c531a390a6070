// The doctor's round: each database by itself, then both together, then the server in front of them.

import type { CallFunction } from '#core/call_function.ts';
import { checkHealth } from '#core/console/health.ts';
import type { IntakeLook, LedgerLook } from '#core/console/sample.ts';
import type { Log } from '#core/ports.ts';
import { AdminClient, ApiError } from '../admin/client.ts';
import type { Connection } from '../commands/operator.ts';
import { readAck } from '../db/ack.ts';
import { createDatabase } from '../db/database.ts';
import { type CellAddress, patroniOf } from '../fleet/addresses.ts';
import { mergePlaces, type PlaceRow } from '../fleet/directory.ts';
import { type CellState, lookAtCells, withCells } from '../fleet/operate.ts';
import type { SideName } from '../migrate/sides.ts';
import { createSecretSource } from '../webhook/secret_source.ts';
import { secretsOf, secretUses } from '../webhook/secret_users.ts';
import { examineChain } from './audit_chain.ts';
import { judgeCell } from './cell.ts';
import { examineErasures } from './erasures.ts';
import { type Finding, fail, ok, skip, warn } from './finding.ts';
import {
  judgeAddresses,
  judgeDatabase,
  judgeHealth,
  judgeHookSecret,
  judgeInbox,
  judgePooler,
  judgePools,
  judgeQueue,
  judgeRefusals,
  judgeSecrets,
  judgeSides,
  judgeWebhooks,
  TITLES,
} from './judge.ts';
import { type Look, look, messageOf } from './look.ts';
import { judgeHolds, judgeMoney, judgePaidPools, type PaidPool, readEndpoints } from './orders.ts';
import { readPatroni } from './patroni.ts';
import { judgeTicketSecret } from './tickets.ts';
import { examineVacuum } from './vacuum.ts';

export interface Patient {
  /** The intake, or several of them. */
  readonly cells: readonly CellAddress[];
  readonly db2Url: string;
  /** Left out where no server is known. */
  readonly server?: Connection;
  /** Where the secrets of endpoints are looked for. */
  readonly env: NodeJS.ProcessEnv;
  readonly log: Log;
}

export async function examine(patient: Patient): Promise<Finding[]> {
  const [first, ...others] = patient.cells;
  if (first === undefined) return [];
  const isOne = others.length === 0;
  const findings = await examinePair(patient, first, { isFirst: true });
  for (const cell of others) findings.push(...(await examinePair(patient, cell, { isFirst: false })));
  return [
    ...findings,
    ...(isOne ? [] : await examineFleet(patient.cells, patient.log)),
    judgeTicketSecret(patient.env),
    ...(await examineServer(patient.server)),
  ];
}

/** A cell and the ledger. Findings about the ledger alone come with the first cell. */
async function examinePair(
  patient: Patient,
  cell: CellAddress,
  { isFirst }: { isFirst: boolean },
): Promise<Finding[]> {
  const isOne = patient.cells.length === 1;
  const findings = await examineDatabases(patient, cell, isFirst);
  return isOne
    ? findings
    : findings.map((finding) => ({ ...finding, check: `${finding.check} (cell ${cell.name})` }));
}

async function examineDatabases(
  patient: Patient,
  cell: CellAddress,
  withLedger: boolean,
): Promise<Finding[]> {
  const { url: db1Url } = cell;
  const [db1, db2] = await Promise.all([look('db1', db1Url), look('db2', patient.db2Url)]);
  const misplaced = judgeSides(db1, db2);
  if (misplaced.length > 0) {
    const wellPlaced = (['db1', 'db2'] as const).filter((place) => ({ db1, db2 })[place].side === place);
    return [
      ...wellPlaced.flatMap((place) => judgeDatabase(place, { db1, db2 }[place])),
      ...misplaced,
      skip('health', 'see above'),
    ];
  }
  return [
    ...judgeDatabase('db1', db1),
    ...judgePooler('db1', db1, patient.env),
    ...(await examineCell('db1', db1, patient.env, patroniOf(patient.env, patient.cells, cell))),
    ...(withLedger
      ? [
          ...judgeDatabase('db2', db2),
          ...judgePooler('db2', db2, patient.env),
          ...(await examineCell('db2', db2, patient.env, patient.env.DB2_PATRONI_URL)),
        ]
      : []),
    ...(isComplete(db1) ? [judgePools(db1), judgeRefusals(db1), judgeHookSecret(db1, patient.env)] : []),
    ...(isComplete(db1) && isComplete(db2)
      ? await examineBoth(patient, db1Url, withLedger)
      : [skip('health', 'see above')]),
  ];
}

async function examineCell(
  side: SideName,
  seen: Look,
  env: NodeJS.ProcessEnv,
  patroniUrls: string | undefined,
): Promise<Finding[]> {
  const patroni = await readPatroni(seen.url, patroniUrls);
  return judgeCell(TITLES[side], seen, readAck(env), patroni);
}

function isComplete({ facts, missing }: Look): boolean {
  return facts !== undefined && missing.length === 0;
}

async function examineBoth(
  { db2Url, env, log }: Patient,
  db1Url: string,
  withLedger: boolean,
): Promise<Finding[]> {
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
    const health = await checkHealth({ intakes: [{ call: intake }], db2: ledger, now: Date.now });
    const uses = await secretUses(db2, createSecretSource(env));
    const paidPools = await intake<PaidPool>('paid_pools', {});
    const endpoints =
      paidPools.length === 0 ? [] : await readEndpoints(db2, secretsOf(db2, createSecretSource(env)));
    return [
      ...judgeHealth(health.filter(({ kind }) => kind !== 'redis' && kind !== 'inbox')),
      ...(fromIntake ? judgeIntake(fromIntake.live_sample) : []),
      judgePaidPools(paidPools, endpoints),
      ...(withLedger && fromLedger ? judgeLedger(fromLedger.ledger_sample) : []),
      ...(withLedger ? [judgeSecrets(uses)] : []),
      ...(await examineVacuum('db1', intake)),
      ...(withLedger ? await examineVacuum('db2', ledger) : []),
      await examineChain('db1', db1),
      ...(await examineErasures('db1', db1)),
      ...(withLedger ? [await examineChain('db2', db2), ...(await examineErasures('db2', db2))] : []),
    ];
  } catch (error) {
    return [
      fail('health', messageOf(error), 'run `sluice doctor` again; the log of the database tells more'),
    ];
  } finally {
    await Promise.all([db1.end(), db2.end()]);
  }
}

const judgeIntake = (look: IntakeLook): Finding[] => [
  ...judgeQueue(look),
  ...judgeInbox(look),
  judgeHolds(look),
];

const judgeLedger = (look: LedgerLook): Finding[] => [...judgeWebhooks(look), ...judgeMoney(look)];

/** Whether the cells are what SLUICE_CELLS says, and agree about where each pool lives. */
async function examineFleet(cells: readonly CellAddress[], log: Log): Promise<Finding[]> {
  return withCells(cells, log, async (open) => {
    const states = await lookAtCells(open);
    const answering = open.filter((_, at) => states[at]?.here !== undefined);
    const reports = await Promise.all(
      answering.map(async ({ name, call }) => [name, await call<PlaceRow>('cell_directory', {})] as const),
    );
    const { places, doubles } = mergePlaces(new Map(reports));
    const moving = [...places].filter(([, { movingTo }]) => movingTo !== undefined);
    return [
      ...states.map(judgeMember),
      doubles.size === 0
        ? ok('places of pools', `${places.size} pools, each in one cell`)
        : fail(
            'places of pools',
            `in several cells: ${[...doubles].map(([pool, names]) => `${pool} (${names.join(', ')})`).join('; ')}`,
            'only the first sells; rename or remove the pool in the others',
          ),
      ...(moving.length === 0
        ? []
        : [
            warn(
              'moves',
              `between cells: ${moving.map(([pool, { movingTo }]) => `${pool} → ${movingTo}`).join(', ')}`,
              'run `sluice pools move <pool> --to <cell>` again: it goes on',
            ),
          ]),
    ];
  });
}

function judgeMember({ name, state, here }: CellState): Finding {
  const check = `cell ${name}`;
  if (state === 'joined') return ok(check, `number ${here?.number}, ${here?.pools} pools`);
  if (state === 'draining')
    return warn(check, 'draining: it takes no new pools', `\`sluice cells add ${name}\` ends that`);
  if (state === 'away')
    return fail(check, 'does not answer', 'start it; the pools of the other cells are sold meanwhile');
  const todo =
    state === 'not joined'
      ? `run \`sluice cells add ${name}\``
      : 'compare SLUICE_CELLS with `sluice cells list`';
  return fail(check, state, todo);
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
    const found = `${server.url}: ${messageOf(error)}`;
    return [fail('server', found, adviceAbout(error)), skip('addresses', 'see above')];
  }
}

/** The server's own advice, but where it is about the one request: the server and the key are well while a database is away. */
function adviceAbout(error: unknown): string {
  if (!(error instanceof ApiError) || error.status === 0)
    return 'start `sluice serve`, or set SLUICE_URL to its address';
  return error.code === 'database_unavailable'
    ? 'see the databases above, and whether the server was started with the same addresses'
    : error.hint;
}
