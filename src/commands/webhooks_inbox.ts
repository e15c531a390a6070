// `sluice webhooks inbox`: deliveries that were accepted while DB2 was away. It needs DB1 alone.

import type { IntakeLook } from '#core/console/sample.ts';
import { createInboxOperatorStore, type InboxOperatorStore, type InboxRow } from '#core/inbox/operators.ts';
import { createDatabase, type Database } from '../db/database.ts';
import { StackError } from '../failure.ts';
import { createLog } from '../log.ts';
import { explained } from './db2.ts';
import { action, type Group, short, UsageError } from './grammar.ts';
import { actor, OPTION, readDatabaseUrls } from './operator.ts';
import { formatTable } from './table.ts';
import { readReason } from './values.ts';

const MAX_LIST = 1_000;
/** `webhooks list` is about DB2: where DB1 takes longer, it does without the line. */
const GLANCE_MS = 3_000;

async function withDb1<Result>(
  work: (db1: Database) => Promise<Result>,
  callTimeoutMs?: number,
): Promise<Result> {
  const { db1Url: url } = readDatabaseUrls(process.env);
  if (!url)
    throw new StackError(
      'DB1_URL is not set, and no stack runs here',
      'set it, or start one with `npm start`',
    );
  const timeout = callTimeoutMs === undefined ? {} : { callTimeoutMs };
  const db1 = createDatabase({ url, max: 1, applicationName: 'sluice-cli', ...timeout, log: createLog() });
  try {
    return await work(db1);
  } catch (error) {
    throw explained(error, 'DB1');
  } finally {
    await db1.end();
  }
}

function withInbox<Result>(work: (store: InboxOperatorStore) => Promise<Result>): Promise<Result> {
  return withDb1((db1) => work(createInboxOperatorStore((name, args) => db1.call(`public.${name}`, args))));
}

/** A line about what waits, for `webhooks list`; undefined where nothing does, or DB1 is not known or does not answer. */
export async function inboxLine(): Promise<string | undefined> {
  const look = await withDb1(
    async (db1) => (await db1.call<{ live_sample: IntakeLook }>('public.live_sample', {}))[0]?.live_sample,
    GLANCE_MS,
  ).catch(() => undefined);
  const { waiting = 0, oldest_sec = 0, dead_letters = 0 } = look?.inbox ?? {};
  const parts = [
    ...(waiting > 0 ? [`${waiting} waiting for DB2, the oldest for ${oldest_sec} s`] : []),
    ...(dead_letters > 0 ? [`${dead_letters} that DB2 refused`] : []),
  ];
  return parts.length === 0 ? undefined : `In the inbox: ${parts.join('; ')} (sluice webhooks inbox).`;
}

const list = action({
  about: 'List the deliveries that wait for DB2, oldest first',
  options: {
    dead: { about: 'those that DB2 refused for good, instead' },
    limit: { range: [1, MAX_LIST], default: 100, about: 'at most this many' },
    json: OPTION.json,
  },
  examples: ['sluice webhooks inbox', 'sluice webhooks inbox list --dead'],
  async run({ dead, limit, json }) {
    const deliveries = await withInbox((store) => store.list(dead, 0, limit));
    if (json) console.log(JSON.stringify({ deliveries }));
    else if (deliveries.length === 0)
      console.log(dead ? 'DB2 refused none.' : 'The inbox is empty: DB2 has everything.');
    else console.log(tableOf(deliveries));
    return 0;
  },
});

function endAction(word: 'replay' | 'discard', about: string) {
  return action({
    about,
    args: '<id> …',
    options: { reason: OPTION.reason, json: OPTION.json },
    examples: [`sluice webhooks inbox ${word} 7`],
    async run({ reason, json }, ids) {
      const msgIds = ids.map(readMsgId);
      const results = await withInbox((store) =>
        store[word]({ msgIds, actor: actor(), reason: readReason(reason) }),
      );
      if (json) console.log(JSON.stringify({ results }));
      else for (const { msg_id, outcome } of results) console.log(`${msg_id} ${outcome}`);
      return results.every(({ outcome }) => outcome !== 'unknown') ? 0 : 1;
    },
  });
}

export const inbox: Group = {
  about: 'Deliveries that servers accepted while DB2 was down',
  default: 'list',
  actions: {
    list,
    replay: endAction('replay', 'Send dead letters of the inbox round again, by their ids'),
    discard: endAction('discard', 'Give dead letters of the inbox up, by their ids; the archive keeps them'),
  },
};

function readMsgId(text: string): number {
  if (/^[1-9][0-9]{0,15}$/.test(text)) return Number(text);
  throw new UsageError(`"${short(text)}" is not the id of a dead letter of the inbox`);
}

function tableOf(rows: readonly InboxRow[]): string {
  return formatTable(
    ['ID', 'KIND', 'ENDPOINT OR SITE', 'EVENTS', 'RECEIVED', 'ATTEMPTS', 'ERROR'],
    rows.map((row) => [
      String(row.msg_id),
      row.kind,
      row.door,
      row.ids.join(','),
      row.received_at.replace(/\.\d+/, ''),
      String(row.attempts),
      row.error ?? '',
    ]),
  );
}
