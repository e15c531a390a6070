// `sluice demo --paid`: buyers who pay at the stand-in for Stripe, checked against three books at the end.

import { createSluiceClient, type OwnClaim } from '#client/index.ts';
import { AdminClient } from '../admin/client.ts';
import { createDatabase } from '../db/database.ts';
import { type Entrance, entranceProblems, tryEntrance } from '../demo/paid/entrance.ts';
import { planBuyers } from '../demo/paid/plan.ts';
import { Seller } from '../demo/paid/seller.ts';
import { type PaidShow, runPaidShow } from '../demo/paid/show.ts';
import { describePaid, type PaidOutcome, rowsOf } from '../demo/paid/summary.ts';
import { StackError } from '../failure.ts';
import { createLog } from '../log.ts';
import { StandInClient } from '../stripe_stand_in/client.ts';
import { readConnection, readDatabaseUrls, readStackEnv } from './operator.ts';

/** What a seat costs, in minor units. */
const PRICE = 4_250;
const CURRENCY = 'eur';
/** The shortest that a pool can have: who lets it run out is waited for. */
const HOLD_SEC = 60;
const GRACE_SEC = 5;
const MOST_SEATS = 4;
export const PAID_BUYERS = 60;
export const PAID_SEATS = 80;
export const MOST_PAID_BUYERS = 500;

/** Longer than Stripe is silent: a buyer whose checkout got no answer asks again. */
const CHECKOUT_TRIES = 15;

const LOOPBACK = /^http:\/\/(127(\.\d{1,3}){3}|\[::1\]|localhost)(:\d+)?$/;

export interface PaidOrder {
  readonly buyers: number;
  readonly seats: number;
  readonly json: boolean;
  readonly signal: AbortSignal;
}

export async function runPaidDemo({ buyers, seats, json, signal }: PaidOrder): Promise<number> {
  const connection = readConnection(process.env);
  const url = connection.url.replace(/\/+$/, '');
  const { db1Url, db2Url } = readDatabaseUrls(process.env);
  if (!db1Url || !db2Url)
    throw new StackError('DB1_URL and DB2_URL are not set', 'set both, or start a stack with `npm start`');
  const stripe = await findStandIn();
  const admin = new AdminClient(connection);
  const pool = `demo_paid_${new Date().toISOString().replace(/\D/g, '')}`;
  await admin.post('/admin/pools', {
    pool_id: pool,
    slots: seats,
    reason: 'sluice demo --paid',
    confirm_by: 'payment',
    price: PRICE,
    currency: CURRENCY,
    payment_tenant: 'stripe',
    payment_livemode: stripe.isLive,
    hold_sec: HOLD_SEC,
    expire_grace_sec: GRACE_SEC,
    max_quantity: MOST_SEATS,
  });
  const isQuiet = json && !process.stderr.isTTY;
  if (!isQuiet) {
    console.error(
      `${buyers} buyers for ${seats} seats of the pool ${pool}, which are held for ${HOLD_SEC} s`,
    );
    console.error(`  watch it    ${url}/orders?pool_id=${pool}\n  buy one     ${url}/drop/${pool}\n`);
  }
  const log = createLog('error');
  const open = (to: string) => createDatabase({ url: to, max: 1, applicationName: 'sluice-demo', log });
  const [db1, db2] = [open(db1Url), open(db2Url)];
  try {
    const client = createSluiceClient({ url, maxTries: CHECKOUT_TRIES });
    const { standIn, seller } = stripe;
    const market = { pool, client, standIn, seller, signal, holdSec: HOLD_SEC, graceSec: GRACE_SEC };
    const keepers = { pool, price: PRICE, seats, admin, db1, db2, standIn };
    const show = await runPaidShow(market, planBuyers(buyers), keepers, CURRENCY, isQuiet);
    const [ticket, scanned = ticket] = await ticketsOf(client, show, url);
    const entrance = scanned === undefined ? null : await tryEntrance(admin, scanned, show.takenBack[0]);
    const outcome = outcomeOf(pool, show, entrance, ticket ?? null);
    console.log(json ? JSON.stringify(outcome) : `\n${describePaid(outcome, CURRENCY)}`);
    return outcome.ok ? 0 : 1;
  } finally {
    await Promise.all([db1.end(), db2.end()]);
  }
}

/** Refuses to pay anywhere but at the stand-in on this machine. */
async function findStandIn(): Promise<{ standIn: StandInClient; seller: Seller; isLive: boolean }> {
  const { STRIPE_API_URL: url = '', STRIPE_API_KEY: key = '' } = readStackEnv(process.env);
  if (!LOOPBACK.test(url) || key === '')
    throw new StackError(
      'no stand-in for Stripe runs here',
      'start one with `npm start`: this demo never pays at Stripe itself',
    );
  const standIn = new StandInClient(url, key);
  try {
    await standIn.books('session');
  } catch (error) {
    throw new StackError(
      `the stand-in for Stripe at ${url} does not answer`,
      'is `npm start` running?',
      error,
    );
  }
  return { standIn, seller: new Seller(url, key, standIn), isLive: /^[rs]k_live_/.test(key) };
}

/** The links of two tickets that are valid: one to look at, and one for the entrance. */
async function ticketsOf(
  client: ReturnType<typeof createSluiceClient>,
  { served }: PaidShow,
  serverUrl: string,
): Promise<string[]> {
  const claims = served.flatMap(({ end, claim }): OwnClaim[] => (end === 'paid' && claim ? [claim] : []));
  const found: string[] = [];
  for (const claim of claims) {
    const { order } = await client.getClaim(claim);
    // Without SLUICE_PUBLIC_URL a server tells the path alone.
    for (const { ticket_url } of order?.claims ?? [])
      if (ticket_url !== undefined) found.push(new URL(ticket_url, serverUrl).href);
    if (found.length >= 2) break;
  }
  return found;
}

function outcomeOf(
  pool: string,
  { served, books, verdict }: PaidShow,
  entrance: Entrance | null,
  ticket: string | null,
): PaidOutcome {
  const problems = [...verdict.problems, ...entranceProblems(entrance)];
  return {
    pool_id: pool,
    ok: problems.length === 0,
    rows: rowsOf(served, books),
    sums: verdict.sums,
    levels: books.levels,
    problems,
    entrance,
    ticket_url: ticket,
  };
}
