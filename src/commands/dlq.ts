// `sluice dlq`: an operator looks at the dead letters, and sends them round again or throws them away.

import { setTimeout as sleep } from 'node:timers/promises';
import { isDone } from '#core/console/outcomes.ts';
import type { DeadLetter, DeadLetterResult } from '#core/dead_letters.ts';
import {
  createDeadLetterClient,
  type DeadLetterClient,
  type DeadLetterQuery,
} from '../admin/dead_letters.ts';
import { action, type Group, short, UsageError, type Values } from './grammar.ts';
import { canAsk, confirm, OPTION, readConnection, showAction, VARIABLES } from './operator.ts';
import { reportSteps } from './steps.ts';
import { formatTable } from './table.ts';

const SECONDS: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400 };
/** A claim ends within two seconds while a worker runs and the ledger answers. */
const WAIT_FOR_ENDS_MS = 5_000;
const LOOK_EVERY_MS = 250;
/** The server takes at most this many ids at a time. */
const MAX_LIMIT = 1_000;

const FILTER_OPTIONS = {
  pool: { value: 'ID', about: 'of this pool' },
  reason: { value: 'TEXT', about: 'whose reason begins like this' },
  'older-than': { value: 'AGE', about: 'dead for longer than 30s, 10m, 2h or 7d' },
  limit: { range: [1, MAX_LIMIT], default: 100, about: 'at most this many' },
} as const;
const CHANGE_OPTIONS = {
  ...FILTER_OPTIONS,
  'dry-run': { about: 'say what would be done' },
  yes: { about: 'do not ask; needed without a terminal, unless a replay names its letters' },
  'reason-text': OPTION.reason,
  json: OPTION.json,
};

type Filter = Values<typeof FILTER_OPTIONS>;

const connect = (): DeadLetterClient => createDeadLetterClient(readConnection(process.env));

const list = action({
  about: 'List the dead letters, oldest first',
  options: { ...FILTER_OPTIONS, json: OPTION.json },
  examples: ['sluice dlq list --pool demo_concert_2026 --older-than 1h'],
  async run(values) {
    const query = readQuery(values);
    const messages = await connect().list(query);
    if (values.json) console.log(JSON.stringify({ messages }));
    else console.log(messages.length === 0 ? 'No dead letters.' : tableOf(messages));
    return 0;
  },
});

async function show(words: readonly string[], json: boolean): Promise<number> {
  const ids = words.map(readId);
  const client = connect();
  const letters = await Promise.all(ids.map((id) => client.show(id)));
  for (const [index, letter] of letters.entries()) {
    if (letter !== undefined) console.log(JSON.stringify(letter, undefined, json ? undefined : 2));
    else console.error(`The dead letter ${ids[index]} does not exist.`);
  }
  return letters.includes(undefined) ? 1 : 0;
}

async function act(
  action: 'replay' | 'discard',
  values: Values<typeof CHANGE_OPTIONS>,
  words: readonly string[],
): Promise<number> {
  const ids = words.map(readId);
  const query = readQuery(values);
  if (ids.length === 0 && !isFiltered(values))
    throw new UsageError(`${action} needs ids or a filter: --pool, --reason or --older-than`);
  const client = connect();
  const found = ids.length > 0 ? ids : (await client.list(query)).map((letter) => letter.msg_id);
  if (found.length === 0) {
    console.log(values.json ? JSON.stringify({ results: [] }) : 'No dead letters.');
    return 0;
  }
  const isDryRun = values['dry-run'];
  // A replay can be undone by what it leads to, and a script that names its letters has said enough.
  const isNamedReplay = action === 'replay' && ids.length > 0 && !canAsk();
  if (!isDryRun && !values.yes && !isNamedReplay) {
    const question = `${action} ${found.length} dead letter${found.length === 1 ? '' : 's'}?`;
    if (!(await confirm(question))) {
      console.error('Nothing was changed.');
      return 1;
    }
  }
  return reportSteps<DeadLetterResult>(
    async (done) => {
      for (let at = 0; at < found.length; at += MAX_LIMIT)
        done.push(
          ...(await client.act(action, {
            msg_ids: found.slice(at, at + MAX_LIMIT),
            dry_run: isDryRun,
            ...(values['reason-text'] && { reason: values['reason-text'] }),
          })),
        );
    },
    async (results) => reportEnds(await awaitEnds(client, results), values.json),
  );
}

function reportEnds(ends: readonly DeadLetterResult[], asJson: boolean): number {
  if (asJson) console.log(JSON.stringify({ results: ends }));
  else
    console.log(
      formatTable(
        ['ID', 'OUTCOME'],
        ends.map(({ msg_id, outcome }) => [String(msg_id), outcome]),
      ),
    );
  const waiting = ends.filter(({ outcome }) => outcome === 'ending').length;
  if (waiting > 0 && !asJson)
    console.error(`${waiting} still ending: they hold their slots until a worker has told the ledger.`);
  const voiding = ends.filter(({ outcome }) => outcome === 'voiding').length;
  if (voiding > 0 && !asJson)
    console.error(`${voiding} of paid claims: a worker voids them, frees their slots and refunds them.`);
  return ends.every(isDone) ? 0 : 1;
}

/** A discard that is ending has its claim's state in the end, which is committed where the ledger had the ticket. */
async function awaitEnds(
  client: DeadLetterClient,
  results: readonly DeadLetterResult[],
): Promise<DeadLetterResult[]> {
  const deadline = Date.now() + WAIT_FOR_ENDS_MS;
  let isAnswering = true;
  const ends: DeadLetterResult[] = [];
  for (const { msg_id, outcome, claim_id } of results) {
    let end = outcome;
    while (end === 'ending' && claim_id && isAnswering) {
      // The discard is done, whatever the look meets.
      end = await client.stateOf(claim_id).catch(() => {
        isAnswering = false;
        return 'ending';
      });
      if (end !== 'ending' || Date.now() > deadline) break;
      await sleep(LOOK_EVERY_MS);
    }
    ends.push({ msg_id, outcome: end });
  }
  return ends;
}

function tableOf(letters: DeadLetter[]): string {
  return formatTable(
    ['ID', 'POOL', 'USER', 'REASON', 'DEAD SINCE', 'CLAIM'],
    letters.map((letter) => [
      String(letter.msg_id),
      letter.pool_id ?? '-',
      letter.user_id ?? '-',
      letter.reason,
      letter.dead_since.replace(/\.\d+/, ''),
      letter.ending ? 'ending' : (letter.claim_state ?? '-'),
    ]),
  );
}

function readId(text: string): number {
  if (/^[1-9]\d{0,15}$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text);
  throw new UsageError(
    `"${short(text)}" is not the id of a dead letter, a number that \`sluice dlq list\` shows`,
  );
}

function isFiltered(values: Filter): boolean {
  return [values.pool, values.reason, values['older-than']].some((value) => value !== undefined);
}

function readQuery(values: Filter): DeadLetterQuery {
  const query: DeadLetterQuery = { limit: String(values.limit) };
  if (values.pool !== undefined) query.pool_id = values.pool;
  if (values.reason !== undefined) query.reason = values.reason;
  const age = values['older-than'];
  if (age !== undefined) {
    const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(age) ?? [];
    if (count === undefined || unit === undefined)
      throw new UsageError(`--older-than is "${short(age)}"; say 30s, 10m, 2h or 7d`);
    query.older_than_sec = String(Number(count) * (SECONDS[unit] ?? 1));
  }
  return query;
}

const WITHOUT_IDS = 'Without ids it takes what the filters find, and needs at least one filter.';

export const command: Group = {
  about: 'List the dead letters of claims, and replay or discard them',
  environment: { ...VARIABLES.server, ...VARIABLES.operator },
  exits: ['when all is done', 'when some id was not'],
  actions: {
    list,
    show: showAction('Show all that is known about some', '<id> …', 'sluice dlq show 17', show),
    replay: action({
      about: `Send dead letters round again: workers decide each claim anew\n\n${WITHOUT_IDS}`,
      args: '[id …]',
      options: CHANGE_OPTIONS,
      examples: ["sluice dlq replay 17 18 --reason-text 'ledger is back'"],
      run: (values, ids) => act('replay', values, ids),
    }),
    discard: action({
      about: `Discard dead letters: their claims end, their slots go back on sale

${WITHOUT_IDS}

A claim ends as soon as the ledger knows, within two seconds while a worker runs and the ledger answers. After five seconds the
command reports it as ending. A claim that answers committed has its ticket already.

A letter that answers ticket_conflict stays: the ledger has sold its slot to another user. Run \`sluice reconcile --fix\`,
which corrects the slot. Then discard the letter.`,
      args: '[id …]',
      options: CHANGE_OPTIONS,
      examples: ['sluice dlq discard --reason malformed --dry-run'],
      run: (values, ids) => act('discard', values, ids),
    }),
  },
};
