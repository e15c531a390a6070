// `sluice demo`: a visible burst against a running stack, checked at the end.

import { setTimeout as delay } from 'node:timers/promises';
import { createSluiceClient, SluiceError } from '#client/index.ts';
import { AdminClient } from '../admin/client.ts';
import { createDatabase, type Database } from '../db/database.ts';
import { refuseOtherLedger } from '../demo/outage.ts';
import { number, type Progress, startProgress } from '../demo/progress.ts';
import { runShow, type ShowOptions } from '../demo/show.ts';
import { describe, type Facts, outcomeOf } from '../demo/summary.ts';
import { newTally } from '../demo/tally.ts';
import { StackError } from '../failure.ts';
import { createLog } from '../log.ts';
import { readSettings } from '../stack/settings.ts';
import { action, type Values } from './grammar.ts';
import { type Connection, OPTION, readConnection, readDatabaseUrls, readStackEnv } from './operator.ts';

const MAX_COUNT = 1_000_000;
const DEFAULT_OUTAGE_SEC = 10;
const MAX_OUTAGE_SEC = 60;
/** Time to open the console and the drop page, for a person at a terminal. */
const CURTAIN_MS = 8_000;
const STOP_SIGNALS: NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];
const CONNECTIONS = 1;
const LOOK_EVERY_MS = 100;

const OPTIONS = {
  buyers: { range: [1, MAX_COUNT], default: 5_000, about: 'how many ask' },
  seats: { range: [1, MAX_COUNT], default: 1_000, about: 'how many seats there are' },
  outage: {
    value: 'SEC',
    range: [1, MAX_OUTAGE_SEC],
    bare: DEFAULT_OUTAGE_SEC,
    about:
      'stop the ledger for so many seconds in the middle of it; only for a stack that `npm start` runs on this machine',
  },
  json: OPTION.json,
} as const;

async function run({ buyers, seats, outage: seconds, json }: Values<typeof OPTIONS>): Promise<number> {
  const connection = readConnection(process.env);
  const { db2Url } = readDatabaseUrls(process.env);
  if (!db2Url) throw new StackError('DB2_URL is not set', 'set it, or start a stack with `npm start`');
  const { dir } = readSettings(process.env);
  const outage = seconds ? { seconds, dir } : undefined;
  if (outage) refuseOtherLedger(db2Url, readStackEnv({ SLUICE_DIR: dir }).DB2_URL);

  const stopping = new AbortController();
  const onSignal = () => stopping.abort();
  for (const signal of STOP_SIGNALS) process.on(signal, onSignal);
  // Connections that the outage takes are part of the show.
  const log = createLog('error');
  const db2 = createDatabase({ url: db2Url, max: CONNECTIONS, applicationName: 'sluice-demo', log });
  try {
    const { signal } = stopping;
    return await perform(connection, { buyers, seats, outage, db2, signal }, json);
  } catch (error) {
    if (!stopping.signal.aborted) throw readable(error);
    console.error('Called off. The pool stays as it is.');
    return 1;
  } finally {
    for (const signal of STOP_SIGNALS) process.off(signal, onSignal);
    await db2.end();
  }
}

type Order = Pick<ShowOptions, 'buyers' | 'seats' | 'outage' | 'db2' | 'signal'>;

async function perform(connection: Connection, order: Order, asJson: boolean): Promise<number> {
  const { buyers, seats, signal } = order;
  const url = connection.url.replace(/\/+$/, '');
  const isWatched = Boolean(process.stderr.isTTY);
  await findLedger(order.db2);
  // To the millisecond: two demos may well start within one second.
  const pool = `demo_${new Date().toISOString().replace(/\D/g, '')}`;
  const admin = new AdminClient(connection);
  await admin.post('/admin/pools', {
    pool_id: pool,
    slots: seats,
    reason: 'sluice demo',
    ...(isWatched && { opens_at: new Date(Date.now() + CURTAIN_MS).toISOString() }),
  });
  const isQuiet = asJson && !isWatched;
  if (!isQuiet) {
    console.error(`${number(buyers)} buyers for ${number(seats)} seats of the pool ${pool}`);
    console.error(`  watch it    ${url}/\n  buy one     ${url}/drop/${pool}\n`);
  }
  await untilOpen(url, pool, signal);
  const tally = newTally();
  const progress = isQuiet ? SILENT : startProgress({ tally, buyers, seats, out: process.stderr });
  let facts: Facts;
  try {
    const stripeSecret = readStackEnv(process.env).STRIPE_WEBHOOK_SECRET;
    facts = await runShow({ ...order, admin, url, pool, stripeSecret, tally, progress });
  } finally {
    progress.end();
  }
  const outcome = outcomeOf(facts, tally);
  console.log(asJson ? JSON.stringify(outcome) : describe(outcome, tally.noPayments));
  return outcome.ok ? 0 : 1;
}

const SILENT: Progress = { say: () => undefined, end: () => undefined };

/** Connects before the crowd keeps this process busy; a wrong address is found out here and not taken for an outage. */
async function findLedger(db2: Database): Promise<void> {
  try {
    await db2.call('public.ledger_ready', {});
  } catch (error) {
    throw new StackError(
      'the ledger does not answer',
      'check DB2_URL, or start a stack with `npm start`',
      error,
    );
  }
}

async function untilOpen(url: string, pool: string, signal: AbortSignal): Promise<void> {
  const client = createSluiceClient({ url });
  while ((await client.pool(pool, { signal })).status === 'not_open')
    await delay(LOOK_EVERY_MS, undefined, { signal });
}

function readable(error: unknown): unknown {
  return error instanceof SluiceError ? new StackError(error.message, error.hint, error) : error;
}

export const command = action({
  about: `Show a burst: 5,000 buyers for 1,000 seats

Makes a new pool, lets all buyers ask for a seat at once, and sends a stream of signed payment events. Prints the
addresses of the console and the drop page, where you can watch. At the end it checks that every claim is exactly one
ticket and every payment had exactly one effect. Start a stack first: \`npm start\`.`,
  options: OPTIONS,
  environment: {
    'SLUICE_URL, SLUICE_ADMIN_KEY, DB2_URL':
      'the server, its key and the ledger (default: those of the stack in .sluice)',
    STRIPE_WEBHOOK_SECRET: 'what payment events are signed with (default: as above)',
  },
  exits: ['when everything is as promised', 'when something is not'],
  examples: [
    'sluice demo',
    'sluice demo --outage',
    'sluice demo --buyers 20000 --seats 500 --outage=20 --json',
  ],
  run,
});
