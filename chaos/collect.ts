// What both databases hold, read straight from the tables and not through the functions that are on trial.

import type pg from 'pg';
import { readSettings } from '../bench/durability.ts';
import { withClient } from '../src/migrate/sql.ts';
import type { FinalState, Letter } from './history.ts';
import type { PaidState } from './paid_history.ts';
import * as paid from './paid_tables.ts';
import {
  AUDIT,
  CALLS,
  CLAIMS,
  CREDITS,
  EVENTS,
  MESSAGES,
  ORDER_EVENTS,
  PAID_TENANT,
  PAYMENTS,
  SLOTS,
  TICKETS,
} from './tables.ts';

export type Urls = { db1: string; db2: string };

type Audit = Omit<FinalState['audit'][number], 'database'>;
type Message = Letter & { place: 'queued' | 'deadLetters' | 'archivedLetters' };

/** The state at rest. Ask when everything has drained, or will not: in between it shows two moments. */
export async function collect(urls: Urls): Promise<FinalState> {
  const [one, two] = await Promise.all([withClient(urls.db1, readIntake), withClient(urls.db2, readLedger)]);
  return {
    ...one,
    ...two,
    audit: [...one.audit, ...two.audit],
    durability: { db1: one.durability, db2: two.durability },
  };
}

/** The same of paid orders. */
export async function collectPaid(urls: Urls): Promise<PaidState> {
  const [one, two] = await Promise.all([
    withClient(urls.db1, async (client) => ({
      orders: await rows<PaidState['orders'][number]>(client, paid.ORDERS),
      claims: await rows<PaidState['claims'][number]>(client, paid.ORDER_CLAIMS),
      decisions: await rows<PaidState['decisions'][number]>(client, paid.DECISIONS),
      checkouts: await rows<PaidState['checkouts'][number]>(client, paid.CHECKOUTS),
    })),
    withClient(urls.db2, async (client) => ({
      outbox: await rows<PaidState['outbox'][number]>(client, paid.OUTBOX),
      refunds: await rows<PaidState['refunds'][number]>(client, paid.REFUNDS),
      events: await rows<PaidState['events'][number]>(client, ORDER_EVENTS),
      tombstones: await rows<PaidState['tombstones'][number]>(client, paid.TOMBSTONES),
      tickets: await rows<PaidState['tickets'][number]>(client, paid.ORDER_TICKETS),
      credits: await rows<PaidState['credits'][number]>(client, paid.ORDER_CREDITS, [PAID_TENANT]),
      payments: await rows<PaidState['payments'][number]>(client, paid.ORDER_PAYMENTS, [PAID_TENANT]),
    })),
  ]);
  return { ...one, ...two };
}

async function readIntake(client: pg.Client) {
  // As every reader of the product does before it believes an empty cache.
  await client.query('select intake.ensure_inventory()');
  const messages = await rows<Message>(client, MESSAGES);
  const at = (place: Message['place']): Letter[] =>
    messages.filter((message) => message.place === place).map(({ place: _, ...letter }) => letter);
  return {
    slots: await rows<FinalState['slots'][number]>(client, SLOTS),
    claims: await rows<FinalState['claims'][number]>(client, CLAIMS),
    queued: at('queued').map(({ reason: _, ...message }) => message),
    deadLetters: at('deadLetters'),
    archivedLetters: at('archivedLetters'),
    audit: (await rows<Audit>(client, AUDIT)).map((row) => ({ database: 'db1' as const, ...row })),
    durability: await readSettings(client),
  };
}

async function readLedger(client: pg.Client) {
  return {
    tickets: await rows<FinalState['tickets'][number]>(client, TICKETS),
    events: await rows<FinalState['events'][number]>(client, EVENTS),
    credits: await rows<FinalState['credits'][number]>(client, CREDITS),
    payments: await rows<FinalState['payments'][number]>(client, PAYMENTS),
    calls: await rows<FinalState['calls'][number]>(client, CALLS),
    audit: (await rows<Audit>(client, AUDIT)).map((row) => ({ database: 'db2' as const, ...row })),
    durability: await readSettings(client),
  };
}

async function rows<Row>(client: pg.Client, statement: string, values: unknown[] = []): Promise<Row[]> {
  return (await client.query(statement, values)).rows as Row[];
}
