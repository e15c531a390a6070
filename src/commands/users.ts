// `sluice users`: all that is known about a user, and its end. On the databases themselves, all of them.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Namespace, type UserPorts, type UserRequest, userDatabases } from '#core/users/databases.ts';
import { type Erasure, eraseUser } from '#core/users/erase.ts';
import { readUser } from '#core/users/export.ts';
import { createDatabase } from '../db/database.ts';
import { StackError } from '../failure.ts';
import { createLog } from '../log.ts';
import { ANY_DATABASE, explained } from './db2.ts';
import { action, type Group, UsageError } from './grammar.ts';
import { actor, confirm, OPTION, readDatabaseUrls, VARIABLES } from './operator.ts';
import { startProgress } from './progress.ts';
import { formatTable } from './table.ts';
import { readReason, readText } from './values.ts';

const MAX_USER_CHARS = 200;
/** A user with a hundred thousand rows among millions takes a minute or two. */
const BUDGET_MS = 60 * 60 * 1_000;

const OPTIONS = {
  verified: { about: 'only of the signed-in user of this name' },
  unverified: { about: 'only of claims that gave this name without a sign-in' },
  reason: OPTION.reason,
};

const NAMESPACES = `Verified and unverified users of one name are two users: a claim without a sign-in can give any name. Both are meant unless --verified
or --unverified says otherwise. Payments, credits, events and calls are the verified user's.`;

async function withUsers<Result>(work: (ports: UserPorts) => Promise<Result>): Promise<Result> {
  const { cells, db2Url } = readDatabaseUrls(process.env);
  if (cells.length === 0 || !db2Url)
    throw new StackError(
      'DB1_URL (or SLUICE_CELLS) and DB2_URL must both be set, and no stack runs here',
      'a user may be in any of the databases: set all of them, or start a stack with `npm start`',
    );
  const log = createLog();
  const open = [...cells.map(({ url }) => url), db2Url].map((url) =>
    createDatabase({ url, max: 1, applicationName: 'sluice-cli', log }),
  );
  const calls = open.map(
    (db) =>
      <Row>(name: string, args: Record<string, unknown>) =>
        db.call<Row>(`public.${name}`, args),
  );
  const ofCells = cells.map(({ name }, at) => ({ name, call: calls[at] as (typeof calls)[number] }));
  const databases = userDatabases(calls.at(-1) as (typeof calls)[number], ofCells);
  try {
    return await work({ ...databases, now: Date.now, pause: (ms) => sleep(ms) });
  } catch (error) {
    throw explained(error, ...ANY_DATABASE);
  } finally {
    await Promise.all(open.map((db) => db.end()));
  }
}

function requestOf(
  { verified, unverified, reason }: { verified: boolean; unverified: boolean; reason: string | undefined },
  id: string,
): UserRequest {
  if (verified && unverified)
    throw new UsageError('--verified and --unverified: leave both out, and both users are meant');
  const namespace: Namespace = verified ? 'verified' : unverified ? 'unverified' : 'both';
  return {
    userId: readText('a user id', id, MAX_USER_CHARS),
    namespace,
    actor: actor(),
    reason: readReason(reason),
  };
}

const exported = action({
  about: `Print everything that the databases hold about a user, as JSON

${NAMESPACES}
The audit log says who asked. Give a person who signed in what --verified prints: the rest may belong to another person.`,
  args: '<id>',
  options: OPTIONS,
  examples: ['sluice users export ann@example.com > ann.json'],
  run: (values, [id]) => {
    const request = requestOf(values, id);
    return withUsers(async (ports) => {
      // Piece by piece: a hundred thousand rows need not be in memory.
      const { userId: user_id, namespace } = request;
      const head = JSON.stringify({ user_id, namespace, exported_at: new Date(ports.now()).toISOString() });
      console.log(`${head.slice(0, -1)},"found":[`);
      let isFirst = true;
      for await (const { database, place, rows } of readUser(ports, request)) {
        if (rows.length === 0) continue;
        console.log(`${isFirst ? '' : ','}${JSON.stringify({ database, place, rows })}`);
        isFirst = false;
      }
      console.log(']}');
      return 0;
    });
  },
});

const erase = action({
  about: `Erase a user: replace the id by a random name in every table of every database, for good

${NAMESPACES}
It also replaces the id in payloads, deletes raw bodies, and destroys the key of the pseudonym in the audit log. Tickets, sums of
credits and keys that catch duplicates stay, under the random name; claims on their way become tickets. If it is interrupted, run it
again: it goes on. Backups and exports made before still hold the user (docs/personal_data.md).`,
  args: '<id>',
  options: { ...OPTIONS, yes: OPTION.yes, json: OPTION.json },
  examples: ["sluice users erase ann@example.com --reason 'asked by mail on 24 February' --yes"],
  run: ({ yes, json, ...values }, [id]) => {
    const request = requestOf(values, id);
    return withUsers(async (ports) => {
      if (!yes && !(await isMeant(ports, request))) {
        console.error('Nothing was changed.');
        return 1;
      }
      const progress = startProgress(undefined, 'rows');
      const erasure = await eraseUser(ports, request, BUDGET_MS, progress.advance);
      progress.end();
      if (json) console.log(JSON.stringify(erasure));
      else console.log(said(erasure));
      return erasure.status === 'working' ? 1 : 0;
    });
  },
});

/** Counts first: a name that is also a word stands in many rows. */
async function isMeant(ports: UserPorts, request: UserRequest): Promise<boolean> {
  const counts = new Map<string, number>();
  for await (const { database, place, rows } of readUser(ports, request, undefined, false)) {
    const key = `${database} ${place}`;
    counts.set(key, (counts.get(key) ?? 0) + rows.length);
  }
  const rows = [...counts]
    .filter(([, count]) => count > 0)
    .map(([key, count]) => [...key.split(' '), String(count)]);
  console.error(
    rows.length === 0 ? 'No row names this user.' : formatTable(['DATABASE', 'TABLE', 'ROWS'], rows),
  );
  return confirm('Erase this user for good?');
}

function said({ status, replacement, changed, waits_for }: Erasure): string {
  if (status === 'nothing') return 'No database knows this user: nothing to erase.';
  if (status === 'working')
    return `Not erased yet${waits_for === null ? '' : `, because of this: ${waits_for}`}. Run the same command again: it goes on.`;
  const rows = Object.entries(changed).flatMap(([database, places]) =>
    Object.entries(places).map(([place, count]) => [database, place, String(count)]),
  );
  return `${formatTable(['DATABASE', 'TABLE', 'ROWS'], rows)}\n\nErased. ${replacement} stands in the place of the id.`;
}

export const command: Group = {
  about: 'Export all that is known about a user, or erase the user',
  environment: { ...VARIABLES.databases, ...VARIABLES.operator },
  exits: ['when it is done, also where no row names the user', 'when it is not done yet'],
  actions: { export: exported, erase },
};
