// `sluice webhooks inbox`: deliveries that were accepted while DB2 was away. It needs the intakes alone.

import type { CallFunction } from '#core/call_function.ts';
import type { IntakeLook } from '#core/console/sample.ts';
import { createInboxOperatorStore, type InboxOperatorStore, type InboxRow } from '#core/inbox/operators.ts';
import { createDatabase } from '../db/database.ts';
import { StackError } from '../failure.ts';
import { Fleet } from '../fleet/fleet.ts';
import { type CallableCell, oneIntake } from '../fleet/one_intake.ts';
import { createLog } from '../log.ts';
import { explained } from './db2.ts';
import { action, type Group, short, UsageError } from './grammar.ts';
import { actor, OPTION, readDatabaseUrls } from './operator.ts';
import { formatTable } from './table.ts';
import { readReason } from './values.ts';

const MAX_LIST = 1_000;
/** `webhooks list` is about DB2: where an intake takes longer, it does without that part of the line. */
const GLANCE_MS = 3_000;

interface InboxCell extends CallableCell {
  end(): Promise<void>;
}

async function withCells<Result>(
  work: (fleet: Fleet<InboxCell>) => Promise<Result>,
  callTimeoutMs?: number,
): Promise<Result> {
  const { cells } = readDatabaseUrls(process.env);
  if (cells.length === 0)
    throw new StackError(
      'DB1_URL is not set, and no stack runs here',
      'set it, or start one with `npm start`',
    );
  const timeout = callTimeoutMs === undefined ? {} : { callTimeoutMs };
  const open = cells.map(({ name, url }): InboxCell => {
    const db = createDatabase({ url, max: 1, applicationName: 'sluice-cli', ...timeout, log: createLog() });
    const call: CallFunction = (functionName, args) => db.call(`public.${functionName}`, args);
    return { name, call, watch: call, end: () => db.end() };
  });
  // What it would log, a command tells in its own words.
  const fleet = new Fleet(open, createLog('silent'));
  try {
    if (!fleet.isOne) await fleet.lookAgain();
    return await work(fleet);
  } catch (error) {
    throw explained(error, 'DB1');
  } finally {
    await Promise.all(open.map((cell) => cell.end()));
  }
}

function withInbox<Result>(work: (store: InboxOperatorStore) => Promise<Result>): Promise<Result> {
  return withCells(async (fleet) => {
    const result = await work(createInboxOperatorStore(oneIntake(fleet)));
    for (const cell of fleet.away)
      console.error(`warning: cell ${cell} does not answer; what it has is missing here`);
    return result;
  });
}

/** A line about what waits, for `webhooks list`; undefined where nothing does, or no intake is known or answers. */
export async function inboxLine(): Promise<string | undefined> {
  const inboxes = await withCells(async (fleet) => {
    const { answers } = await fleet.all(({ call }) => call<{ live_sample: IntakeLook }>('live_sample', {}));
    return answers.flatMap(([, [row]]) => row?.live_sample.inbox ?? []);
  }, GLANCE_MS).catch(() => []);
  const waiting = inboxes.reduce((sum, one) => sum + one.waiting, 0);
  const deadLetters = inboxes.reduce((sum, one) => sum + one.dead_letters, 0);
  const oldestSec = Math.max(0, ...inboxes.map(({ oldest_sec }) => oldest_sec ?? 0));
  const parts = [
    ...(waiting > 0 ? [`${waiting} waiting for DB2, the oldest for ${oldestSec} s`] : []),
    ...(deadLetters > 0 ? [`${deadLetters} that DB2 refused`] : []),
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

/** Rows of several cells name theirs. */
function tableOf(rows: readonly (InboxRow & { readonly cell?: string })[]): string {
  const hasCells = rows.some(({ cell }) => cell !== undefined);
  return formatTable(
    [
      'ID',
      ...(hasCells ? ['CELL'] : []),
      'KIND',
      'ENDPOINT OR SITE',
      'EVENTS',
      'RECEIVED',
      'ATTEMPTS',
      'ERROR',
    ],
    rows.map((row) => [
      String(row.msg_id),
      ...(hasCells ? [row.cell ?? ''] : []),
      row.kind,
      row.door,
      row.ids.join(','),
      row.received_at.replace(/\.\d+/, ''),
      String(row.attempts),
      row.error ?? '',
    ]),
  );
}
