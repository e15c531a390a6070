// `sluice retention`: what is kept for how long, in both databases; of several cells, in all.

import type { CallFunction } from '#core/call_function.ts';
import { createDatabase } from '../db/database.ts';
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

interface Place {
  readonly name: string;
  readonly call: CallFunction;
}

/** `work` gets the cells, in their order, and the ledger last. */
async function onDatabases<Result>(work: (places: readonly Place[]) => Promise<Result>): Promise<Result> {
  const { cells, db2Url } = readDatabaseUrls(process.env);
  if (cells.length === 0 || !db2Url)
    throw new StackError(
      'DB1_URL (or SLUICE_CELLS) and DB2_URL must both be set, and no stack runs here',
      'set them, or start a stack with `npm start`',
    );
  const log = createLog();
  const intakes = cells.map(({ name, url }) => ({ name: cells.length > 1 ? `cell ${name}` : 'db1', url }));
  const open = [...intakes, { name: 'db2', url: db2Url }].map(({ name, url }) => {
    const db = createDatabase({ url, max: 1, applicationName: 'sluice-cli', log });
    const call: CallFunction = (functionName, args) => db.call(`public.${functionName}`, args);
    return { name, call, end: () => db.end() };
  });
  try {
    return await work(open);
  } catch (error) {
    throw explained(error, ...ANY_DATABASE);
  } finally {
    await Promise.all(open.map((db) => db.end()));
  }
}

/** What is kept for as long in all databases that have it stands there once; else each rule says where it holds. */
function once(rules: readonly (Rule & { place: string })[]): (Rule & { in?: string[] })[] {
  const alike = (one: Rule) =>
    rules.filter(({ what, keep_days }) => what === one.what && keep_days === one.keep_days);
  return rules
    .filter((rule) => alike(rule)[0] === rule)
    .map(({ place: _, ...rule }) => {
      const places = alike(rule).map(({ place }) => place);
      const all = rules.filter(({ what }) => what === rule.what);
      return places.length === all.length ? rule : { ...rule, in: places };
    });
}

async function list(json: boolean): Promise<number> {
  const rules = await onDatabases(async (places) => {
    const all = places.map(async ({ name, call }) =>
      (await call<Rule>('retention_rules', {})).map((rule) => ({ ...rule, place: name })),
    );
    return once((await Promise.all(all)).flat());
  });
  if (json) console.log(JSON.stringify({ rules }));
  else {
    const rows = rules.map(({ what, keep_days, about, in: places }) => [
      what,
      String(keep_days ?? FOR_EVER),
      places ? `${about} (in ${places.join(', ')})` : about,
    ]);
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
    const changed = await onDatabases(async (places) => {
      const known = await Promise.all(places.map(({ call }) => call<Rule>('retention_rules', {})));
      const holders = places.filter((_, at) => known[at]?.some((rule) => rule.what === what));
      if (holders.length === 0)
        throw new StackError(
          `nothing that is kept is called ${what}`,
          `there are ${[...new Set(known.flat().map((rule) => rule.what))].join(', ')}`,
        );
      let isNew = false;
      for (const { call } of holders) {
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
