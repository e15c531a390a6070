// `sluice retention`: what is kept for how long, in both databases. Of several cells, list reads the first and set changes all.

import type { CallFunction } from '#core/call_function.ts';
import { createDatabase, type Database } from '../db/database.ts';
import { StackError } from '../failure.ts';
import { createLog } from '../log.ts';
import { ANY_DATABASE, explained } from './db2.ts';
import { action, type Group, readWhole } from './grammar.ts';
import { actor, listAction, OPTION, readDatabaseUrls, VARIABLES } from './operator.ts';
import { formatTable } from './table.ts';
import { readReason } from './values.ts';

interface Rule {
  readonly what: string;
  readonly keep_days: number | null;
  readonly about: string;
}

const MAX_DAYS = 36_500;
const FOR_EVER = 'forever';

/** `work` gets the cells, in their order, and the ledger last. */
async function onDatabases<Result>(
  work: (calls: readonly CallFunction[]) => Promise<Result>,
): Promise<Result> {
  const { cells, db2Url } = readDatabaseUrls(process.env);
  if (cells.length === 0 || !db2Url)
    throw new StackError(
      'DB1_URL (or SLUICE_CELLS) and DB2_URL must both be set, and no stack runs here',
      'set them, or start a stack with `npm start`',
    );
  const log = createLog();
  const open: Database[] = [...cells.map(({ url }) => url), db2Url].map((url) =>
    createDatabase({ url, max: 1, applicationName: 'sluice-cli', log }),
  );
  try {
    return await work(open.map((db) => (name, args) => db.call(`public.${name}`, args)));
  } catch (error) {
    throw explained(error, ...ANY_DATABASE);
  } finally {
    await Promise.all(open.map((db) => db.end()));
  }
}

/** Samples are kept in both databases, and for as long. */
function once(rules: readonly Rule[]): Rule[] {
  return rules.filter(
    ({ what, keep_days }, at) =>
      rules.findIndex((other) => other.what === what && other.keep_days === keep_days) === at,
  );
}

async function list(json: boolean): Promise<number> {
  const rules = await onDatabases(async (calls) => {
    const ends = [calls[0], calls.at(-1)].filter((call) => call !== undefined);
    return (await Promise.all(ends.map((call) => call<Rule>('retention_rules', {})))).flat();
  }).then(once);
  if (json) console.log(JSON.stringify({ rules }));
  else {
    const rows = rules.map(({ what, keep_days, about }) => [what, String(keep_days ?? FOR_EVER), about]);
    console.log(formatTable(['WHAT', 'DAYS', 'WHICH IS'], rows));
  }
  return 0;
}

const set = action({
  about: `Say for how many days something is kept, or that it is kept ${FOR_EVER}

Workers remove older data in small parts. For payloads, keep_payload_days of an endpoint overrides it. Keys that catch duplicates
stay for ever. Raising the number does not bring removed data back.`,
  args: '<what> <days>',
  options: { reason: OPTION.reason, json: OPTION.json },
  examples: [
    "sluice retention set calls 30 --reason 'our policy'",
    `sluice retention set webhook_payloads ${FOR_EVER}`,
  ],
  async run({ reason, json }, [what, text]) {
    const days = text === FOR_EVER ? null : readWhole('<days>', text, [1, MAX_DAYS]);
    const args = { p_what: what, p_keep_days: days, p_actor: actor(), p_reason: readReason(reason) };
    const changed = await onDatabases(async (calls) => {
      const known = await Promise.all(calls.map((call) => call<Rule>('retention_rules', {})));
      const holders = calls.filter((_, at) => known[at]?.some((rule) => rule.what === what));
      if (holders.length === 0)
        throw new StackError(
          `nothing that is kept is called ${what}`,
          `there are ${[...new Set(known.flat().map((rule) => rule.what))].join(', ')}`,
        );
      let isNew = false;
      for (const call of holders) {
        const [row] = await call<{ set_retention: boolean }>('set_retention', args);
        isNew ||= row?.set_retention === true;
      }
      return isNew;
    });
    const kept = days === null ? FOR_EVER : `for ${days} days`;
    if (json) console.log(JSON.stringify({ what, keep_days: days, changed }));
    else console.log(`${what}: kept ${kept}${changed ? '' : ', as before'}.`);
    return 0;
  },
});

export const command: Group = {
  about: 'How long each kind of data is kept; the owners of the databases decide',
  environment: { ...VARIABLES.databases, ...VARIABLES.operator },
  exits: ['when it is done', 'when it is not'],
  actions: {
    list: listAction(
      'List what is not kept for ever, and for how many days it is kept',
      'sluice retention list',
      list,
    ),
    set,
  },
};
