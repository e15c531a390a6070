// `sluice claims`: find a buyer's claim, see how far it came, give its slot back, take its ticket back.

import type { ClaimRecord } from '#core/claim.ts';
import type { TimelineEvent } from '#core/console/claims.ts';
import { AdminClient, ApiError, type Page } from '../admin/client.ts';
import { factsTable, showEach, timelineTable } from './claim_tables.ts';
import { voidAction } from './claims_void.ts';
import { action, type Group, short, UsageError, type Values } from './grammar.ts';
import { confirm, OPTION, readConnection, showAction, VARIABLES } from './operator.ts';
import { reportSteps } from './steps.ts';
import { formatTable, toTheSecond } from './table.ts';
import { isUuid, readUuid, UUID_FORM } from './values.ts';

const FILTERS = {
  user: 'user_id',
  claim: 'claim_id',
  request: 'request_id',
  pool: 'pool_id',
  state: 'state',
} as const;

const CLAIM_STATES = [
  'held',
  'queued',
  'validated',
  'committed',
  'dead_letter',
  'released',
  'expired',
  'refused',
  'discarded',
  'voided',
];

const FIND_OPTIONS = {
  user: { value: 'ID', about: 'of this user' },
  claim: { value: 'ID', about: 'with this id' },
  request: { value: 'ID', about: 'made with this request id' },
  pool: { value: 'ID', about: 'of this pool' },
  state: {
    value: 'STATE',
    choices: CLAIM_STATES,
    about: CLAIM_STATES.join(', '),
  },
  limit: { range: [1, 1_000], default: 100, about: 'at most this many' },
  after: { value: 'ID', about: 'those after this claim: "next" of the page before' },
  json: OPTION.json,
} as const;

const connect = (): AdminClient => new AdminClient(readConnection(process.env));

function checkIds(ids: readonly string[]): void {
  for (const id of ids)
    if (!isUuid(id)) throw new UsageError(`"${short(id)}" is not the id of a claim, ${UUID_FORM}`);
}

function readQuery(values: Values<typeof FIND_OPTIONS>): Record<string, string> {
  const query: Record<string, string> = {};
  for (const [option, field] of Object.entries(FILTERS)) {
    const value = values[option as keyof typeof FILTERS];
    if (value !== undefined) query[field] = value;
  }
  if (Object.keys(query).length === 0)
    throw new UsageError(
      `find needs a filter: ${Object.keys(FILTERS)
        .map((name) => `--${name}`)
        .join(', ')}`,
    );
  if (values.after !== undefined) query.after = readUuid('--after', values.after);
  return { ...query, limit: String(values.limit) };
}

async function find(values: Values<typeof FIND_OPTIONS>): Promise<number> {
  const query = readQuery(values);
  const page = await connect().get<Page<ClaimRecord>>('/admin/claims', query);
  if (values.json) {
    console.log(JSON.stringify(page));
    return 0;
  }
  const rows = page.items.map(({ claim_id, pool_id, user_id, state, claimed_at, end_reason, ending }) => [
    claim_id,
    pool_id,
    user_id,
    ending ? `${state}, ending` : state,
    toTheSecond(claimed_at),
    end_reason ?? '-',
  ]);
  const header = ['CLAIM', 'POOL', 'USER', 'STATE', 'CLAIMED', 'END'];
  console.log(rows.length === 0 ? 'No such claims.' : formatTable(header, rows));
  if (page.next !== null) console.error(`There may be more: --after ${page.next}`);
  return 0;
}

function show(ids: readonly string[], json: boolean): Promise<number> {
  checkIds(ids);
  return showEach<{ claim: ClaimRecord; timeline: TimelineEvent[] }>(connect, ids, json, {
    pathOf: (id) => `/admin/claims/${id}`,
    describe: ({ claim, timeline }) =>
      `${factsTable('CLAIM', claim, 'claim_id')}\n\n${timelineTable(timeline)}`,
    unknown: (id) => `The claim ${id} does not exist.`,
  });
}

interface Released {
  readonly claim_id: string;
  readonly outcome: string;
}

const RELEASE_OPTIONS = { yes: OPTION.yes, reason: OPTION.reason, json: OPTION.json };

async function release(
  { yes, reason, json }: Values<typeof RELEASE_OPTIONS>,
  ids: readonly string[],
): Promise<number> {
  checkIds(ids);
  const api = connect();
  if (!yes && !(await confirm(`Release ${ids.length === 1 ? ids[0] : `${ids.length} claims`}?`))) {
    console.error('Nothing was changed.');
    return 1;
  }
  return reportSteps<Released>(
    async (done) => {
      for (const claim_id of ids) done.push({ claim_id, outcome: await releaseOne(api, claim_id, reason) });
    },
    (results) => reportReleased(results, json),
  );
}

function reportReleased(results: readonly Released[], asJson: boolean): number {
  const rows = results.map(({ claim_id, outcome }) => [claim_id, outcome]);
  console.log(asJson ? JSON.stringify({ results }) : formatTable(['CLAIM', 'OUTCOME'], rows));
  return results.every(({ outcome }) => outcome === 'released' || outcome === 'ending') ? 0 : 1;
}

/** Its state afterwards, ending where a worker has it, or the code of the refusal. */
async function releaseOne(api: AdminClient, id: string, reason?: string): Promise<string> {
  try {
    const { state, ending } = await api.post<ClaimRecord>(`/admin/claims/${id}/release`, { reason });
    return ending ? 'ending' : state;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 404 || error.status === 409)) return error.code;
    throw error;
  }
}

export const command: Group = {
  about: "Find a buyer's claim, see its history, release its slot or void its ticket",
  environment: { ...VARIABLES.server, ...VARIABLES.operator },
  exits: ['when all is done', 'when some claim was not there, or could not be released or voided'],
  actions: {
    find: action({
      about: 'Find claims that match all of the filters; at least one is needed',
      options: FIND_OPTIONS,
      examples: [
        'sluice claims find --user ann --pool opening_night',
        "sluice claims find --state dead_letter --json | jq -r '.items[].claim_id'",
      ],
      run: find,
    }),
    show: showAction(
      'Show claims and their way, from the request to the ledger',
      '<id> …',
      'sluice claims show 0198c0de-0000-7000-8000-000000000001',
      show,
    ),
    release: action({
      about: 'Release claims that are not tickets: their slots go back on sale, with an audit row',
      args: '<id> …',
      options: RELEASE_OPTIONS,
      examples: ["sluice claims release 0198c0de-0000-7000-8000-000000000001 --reason 'asked by phone'"],
      run: release,
    }),
    void: voidAction,
  },
};
