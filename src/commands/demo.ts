// `sluice demo`: a visible burst against a running stack, checked at the end.

import { setTimeout as delay } from 'node:timers/promises';
import { createSluiceClient, SluiceError } from '#client/index.ts';
import { AdminClient } from '../admin/client.ts';
import { createDatabase, type Database } from '../db/database.ts';
import { SILENT } from '../demo/lines.ts';
import { startLoadMeter } from '../demo/load.ts';
import { refuseOtherLedger } from '../demo/outage.ts';
import { number, startProgress } from '../demo/progress.ts';
import { runShow, type ShowOptions } from '../demo/show.ts';
import { describe, type Facts, outcomeOf } from '../demo/summary.ts';
import { newTally } from '../demo/tally.ts';
import { StackError } from '../failure.ts';
import { createLog } from '../log.ts';
import { readSettings } from '../stack/settings.ts';
import { MOST_PAID_BUYERS, PAID_BUYERS, PAID_SEATS, runPaidDemo } from './demo_paid.ts';
import { action, UsageError, type Values } from './grammar.ts';
import { type Connection, OPTION, readConnection, readDatabaseUrls, readStackEnv } from './operator.ts';

const MAX_COUNT = 1_000_000;
const BUYERS = 5_000;
const SEATS = 1_000;
const DEFAULT_OUTAGE_SEC = 10;
const MAX_OUTAGE_SEC = 60;
/** Time to open the console and the drop page, for a person at a terminal. */
const CURTAIN_MS = 8_000;
const STOP_SIGNALS: NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];
/** One looks for tickets, one whether the ledger is there. */
const CONNECTIONS = 2;
/** Far longer than a look takes: one that hangs must not hide that the ledger is back. */
const LOOK_TIMEOUT_MS = 5_000;
const LOOK_EVERY_MS = 100;

const OPTIONS = {
  paid: { about: 'seats are paid for, at the stand-in for Stripe that `npm start` runs' },
  buyers: { range: [1, MAX_COUNT], about: `how many ask (default: ${BUYERS}, with --paid ${PAID_BUYERS})` },
  seats: {
    range: [1, MAX_COUNT],
    about: `how many seats there are (default: ${SEATS}, with --paid ${PAID_SEATS})`,
  },
  outage: {
    value: 'SEC',
    range: [1, MAX_OUTAGE_SEC],
    bare: DEFAULT_OUTAGE_SEC,
    about:
      'stop the ledger for so many seconds in the middle of it; only for a stack that `npm start` runs on this machine',
  },
  json: OPTION.json,
} as const;

async function run({ paid, ...values }: Values<typeof OPTIONS>): Promise<number> {
  if (!paid) return runBurst({ ...values, buyers: values.buyers ?? BUYERS, seats: values.seats ?? SEATS });
  const { outage, buyers = PAID_BUYERS, seats = PAID_SEATS, json } = values;
  if (outage !== undefined) throw new UsageError('--outage is for the demo without --paid');
  if (buyers > MOST_PAID_BUYERS)
    throw new UsageError(
      `--paid takes ${MOST_PAID_BUYERS} buyers at most: each looks at its order until it is over`,
    );
  return untilCalledOff((signal) => runPaidDemo({ buyers, seats, json, signal }));
}

interface Burst {
  readonly buyers: number;
  readonly seats: number;
  readonly outage: number | undefined;
  readonly json: boolean;
}

async function runBurst({ buyers, seats, outage: seconds, json }: Burst): Promise<number> {
  const connection = readConnection(process.env);
  const { db2Url } = readDatabaseUrls(process.env);
  if (!db2Url) throw new StackError('DB2_URL is not set', 'set it, or start a stack with `npm start`');
  const { dir } = readSettings(process.env);
  const outage = seconds ? { seconds, dir } : undefined;
  if (outage) refuseOtherLedger(db2Url, readStackEnv({ SLUICE_DIR: dir }).DB2_URL);

  // Connections that the outage takes are part of the show.
  const log = createLog('error');
  const db2 = createDatabase({
    url: db2Url,
    max: CONNECTIONS,
    applicationName: 'sluice-demo',
    callTimeoutMs: LOOK_TIMEOUT_MS,
    log,
  });
  try {
    return await untilCalledOff((signal) =>
      perform(connection, { buyers, seats, outage, db2, signal }, json),
    );
  } finally {
    await db2.end();
  }
}

/** Ctrl-C ends it in good order. */
async function untilCalledOff(play: (signal: AbortSignal) => Promise<number>): Promise<number> {
  const stopping = new AbortController();
  const onSignal = () => stopping.abort();
  for (const signal of STOP_SIGNALS) process.on(signal, onSignal);
  try {
    return await play(stopping.signal);
  } catch (error) {
    if (!stopping.signal.aborted) throw readable(error);
    console.error('Called off. The pool stays as it is.');
    return 1;
  } finally {
    for (const signal of STOP_SIGNALS) process.off(signal, onSignal);
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
  const loadSoFar = startLoadMeter();
  const progress = isQuiet ? SILENT : startProgress({ tally, buyers, seats, out: process.stderr });
  let facts: Facts;
  try {
    const stripeSecret = readStackEnv(process.env).STRIPE_WEBHOOK_SECRET;
    facts = await runShow({ ...order, admin, url, pool, stripeSecret, tally, progress });
  } finally {
    progress.end();
  }
  const outcome = outcomeOf(facts, tally, loadSoFar());
  console.log(asJson ? JSON.stringify(outcome) : describe(outcome, tally.noPayments));
  return outcome.ok ? 0 : 1;
}

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
ticket and every payment had exactly one effect. Start a stack first: \`npm start\`.

With --paid the seats cost something, and are held for a minute. Most buyers pay at the stand-in for Stripe, some let the hold
run out, some pay late, some pay twice, one is refunded. At the end the books of the intake, the ledger and the stand-in are
compared to the last ticket and cent; it takes about a minute and a half.`,
  options: OPTIONS,
  environment: {
    'SLUICE_URL, SLUICE_ADMIN_KEY, DB2_URL':
      'the server, its key and the ledger (default: those of the stack in .sluice)',
    STRIPE_WEBHOOK_SECRET: 'what payment events are signed with (default: as above)',
    'STRIPE_API_URL, STRIPE_API_KEY': 'with --paid: the stand-in for Stripe (default: as above)',
  },
  exits: ['when everything is as promised', 'when something is not'],
  examples: [
    'sluice demo',
    'sluice demo --paid',
    'sluice demo --outage',
    'sluice demo --buyers 100000 --seats 10000',
    'sluice demo --buyers 20000 --seats 500 --outage=20 --json',
  ],
  run,
});
