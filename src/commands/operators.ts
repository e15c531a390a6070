// `sluice operators`: the people who may use the console, the admin API and the command line.

import type { CallFunction } from '#core/call_function.ts';
import { createOperatorKeys, type OperatorKeys } from '#core/console/operators.ts';
import { isRole, ROLES } from '#core/roles.ts';
import type { Signed } from '#core/webhook/operators.ts';
import { createDatabase, type Database } from '../db/database.ts';
import { createLog } from '../log.ts';
import { newKey } from '../server/known_operators.ts';
import { copyOperators } from '../server/operator_copy.ts';
import { withOperators } from './db1.ts';
import { action, type Group, UsageError } from './grammar.ts';
import { actor, confirm, listAction, OPTION, readDatabaseUrls, VARIABLES } from './operator.ts';
import { formatTable } from './table.ts';
import { readReason } from './values.ts';

const of =
  (db: Database, schema: string): CallFunction =>
  (name, args) =>
    db.call(`${schema}.${name}`, args);

const keysIn = (db1: Database): OperatorKeys =>
  createOperatorKeys({ intake: of(db1, 'public'), audit: of(db1, 'audit'), newKey });

type Change<Result> = (keys: OperatorKeys, by: Signed) => Promise<Result>;

/** Makes the change in DB1, then brings DB2's copy up to date. */
async function change<Result>(reason: string | undefined, work: Change<Result>): Promise<Result> {
  const by = { actor: actor(), reason: readReason(reason) };
  return withOperators(async (db1) => {
    const result = await work(keysIn(db1), by);
    await tellDb2(db1);
    return result;
  });
}

/** The change stands in DB1; where DB2 is away the next server that reaches both tells it. */
async function tellDb2(db1: Database): Promise<void> {
  const { db2Url } = readDatabaseUrls(process.env);
  if (!db2Url) return;
  const db2 = createDatabase({ url: db2Url, max: 1, applicationName: 'sluice-cli', log: createLog() });
  try {
    await copyOperators(of(db1, 'public'), of(db2, 'public'));
  } catch {
    console.error('DB2 does not know of it yet; a server tells it within ten seconds of reaching both.');
  } finally {
    await db2.end();
  }
}

function showKey(name: string, key: string, json: boolean): number {
  if (json) console.log(JSON.stringify({ name, key }));
  else
    console.log(
      `${key}\n\nThe key of ${name}. It is not shown again; servers know it within a second.\n` +
        'For the console: sign in with it. For the command line: SLUICE_OPERATOR_KEY.',
    );
  return 0;
}

const add = action({
  about: `Add a person, and print the person's key

A viewer sees everything and changes nothing. A scanner checks tickets. An operator also acts on claims, dead letters, events and
pools. An admin also decides who delivers events and who is an operator. A revoked person comes back with a new key.`,
  args: '<name>',
  options: {
    role: { value: 'ROLE', choices: ROLES, about: `${ROLES.join(', ')}; needed` },
    reason: OPTION.reason,
    json: OPTION.json,
  },
  examples: ["sluice operators add 'Zoë Müller' --role viewer"],
  async run({ role, reason, json }, [name]) {
    if (!isRole(role)) throw new UsageError(`--role is missing; it is one of ${ROLES.join(', ')}`);
    const { key } = await change(reason, (keys, by) => keys.add(name, role, by));
    return showKey(name, key, json);
  },
});

const rotate = action({
  about: 'Print a new key for a person; the old key and its sessions end within a second',
  args: '<name>',
  options: { reason: OPTION.reason, json: OPTION.json },
  examples: ["sluice operators rotate 'Zoë Müller' --reason 'lost telephone'"],
  async run({ reason, json }, [name]) {
    const { key } = await change(reason, (keys, by) => keys.rotate(name, by));
    return showKey(name, key, json);
  },
});

const revoke = action({
  about: "Revoke a person's key; the key and its sessions end within a second",
  args: '<name>',
  options: { yes: OPTION.yes, reason: OPTION.reason, json: OPTION.json },
  examples: ["sluice operators revoke 'Zoë Müller' --reason 'left' --yes"],
  async run({ yes, reason, json }, [name]) {
    if (!yes && !(await confirm(`Revoke the key of ${name}?`))) {
      console.error('Nothing was changed.');
      return 1;
    }
    const revoked = await change(reason, (keys, by) => keys.revoke(name, by));
    if (json) console.log(JSON.stringify({ name, revoked }));
    else console.log(revoked ? `${name} is not an operator any more.` : `${name} was revoked before.`);
    return 0;
  },
});

async function list(json: boolean): Promise<number> {
  const operators = await withOperators((db1) => keysIn(db1).list());
  if (json) console.log(JSON.stringify({ operators }));
  else if (operators.length === 0) console.log('No operators yet: SLUICE_ADMIN_KEY is the only key.');
  else {
    const rows = operators.map(({ name, role, key_made_at, last_used_at, revoked_at }) => [
      name,
      revoked_at === null ? role : 'revoked',
      seconds(key_made_at),
      last_used_at === null ? 'never' : seconds(last_used_at),
    ]);
    console.log(formatTable(['NAME', 'ROLE', 'KEY MADE', 'LAST USED'], rows));
  }
  return 0;
}

function seconds(time: string): string {
  return time.replace(/\.\d+/, '');
}

export const command: Group = {
  about:
    'The people who may use the console, the admin API and the command line; the owner of DB1 keeps the list',
  environment: { ...VARIABLES.databases, ...VARIABLES.operator },
  exits: ['when it is done', 'when it is not'],
  actions: {
    list: listAction('List the operators, and when each was last here', 'sluice operators list', list),
    add,
    rotate,
    revoke,
  },
};
