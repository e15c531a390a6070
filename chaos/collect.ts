// What both databases hold, read straight from the tables and not through the functions that are on trial.

import { readFileSync } from 'node:fs';
import type pg from 'pg';
import { withClient } from '../src/migrate/sql.ts';
import type { FinalState, Letter } from './history.ts';

export type Urls = { db1: string; db2: string };

type Audit = Omit<FinalState['audit'][number], 'database'>;
type Message = Letter & { place: 'queued' | 'deadLetters' | 'archivedLetters' };

const sql = (name: string): string => readFileSync(new URL(`sql/${name}.sql`, import.meta.url), 'utf8');

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

async function readIntake(client: pg.Client) {
  await client.query(sql('db1_rebuild'));
  const messages = await rows<Message>(client, 'db1_messages');
  const at = (place: Message['place']): Letter[] =>
    messages.filter((message) => message.place === place).map(({ place: _, ...letter }) => letter);
  return {
    slots: await rows<FinalState['slots'][number]>(client, 'db1_slots'),
    claims: await rows<FinalState['claims'][number]>(client, 'db1_claims'),
    queued: at('queued').map(({ reason: _, ...message }) => message),
    deadLetters: at('deadLetters'),
    archivedLetters: at('archivedLetters'),
    audit: (await rows<Audit>(client, 'audit')).map((row) => ({ database: 'db1' as const, ...row })),
    durability: await readDurability(client),
  };
}

async function readLedger(client: pg.Client) {
  return {
    tickets: await rows<FinalState['tickets'][number]>(client, 'db2_tickets'),
    events: await rows<FinalState['events'][number]>(client, 'db2_events'),
    credits: await rows<FinalState['credits'][number]>(client, 'db2_credits'),
    payments: await rows<FinalState['payments'][number]>(client, 'db2_payments'),
    calls: await rows<FinalState['calls'][number]>(client, 'db2_calls'),
    audit: (await rows<Audit>(client, 'audit')).map((row) => ({ database: 'db2' as const, ...row })),
    durability: await readDurability(client),
  };
}

async function rows<Row>(client: pg.Client, name: string): Promise<Row[]> {
  return (await client.query(sql(name))).rows as Row[];
}

async function readDurability(client: pg.Client): Promise<Record<string, string>> {
  const settings = await rows<{ name: string; setting: string }>(client, 'durability');
  return Object.fromEntries(settings.map(({ name, setting }) => [name, setting]));
}
