// `sluice issues`: what fails, each kind of failure once, and what to do about all of it.

import { ISSUE_KINDS, type Issue, type IssueResult } from '#core/console/issues.ts';
import { isDone } from '#core/console/outcomes.ts';
import { AdminClient } from '../admin/client.ts';
import { factsTable, showEach } from './claim_tables.ts';
import { action, type Group, short, UsageError, type Values } from './grammar.ts';
import { confirm, OPTION, readConnection, showAction, VARIABLES } from './operator.ts';
import { reportSteps } from './steps.ts';
import { formatTable, toTheSecond } from './table.ts';
import { readReason, readUuid } from './values.ts';

const STATES = ['open', 'resolved', 'all'];

const connect = (): AdminClient => new AdminClient(readConnection(process.env));
const pathOf = (id: string): string => `/admin/issues/${readUuid('the id of an issue', id)}`;

const LIST_OPTIONS = {
  state: { value: 'STATE', default: 'open', about: 'open (reopened ones too), resolved or all' },
  kind: { value: 'KIND', about: ISSUE_KINDS.join(', ') },
  lane: { value: 'NAME', about: 'of this pool, handler, endpoint, call site or tenant' },
  type: { value: 'TYPE', about: 'of this type; charge.* means all that begin with charge.' },
  limit: { range: [1, 1_000], default: 100, about: 'at most this many' },
  json: OPTION.json,
} as const;

interface Found {
  readonly issues: readonly Issue[];
  readonly away: readonly string[];
}

async function list(values: Values<typeof LIST_OPTIONS>): Promise<number> {
  const { state, kind, lane, type, limit, json } = values;
  if (!STATES.includes(state))
    throw new UsageError(`--state is "${short(state)}"; known are ${STATES.join(', ')}`);
  const query = {
    limit: String(limit),
    ...(state !== 'all' && { state }),
    ...(kind !== undefined && { kind }),
    ...(lane !== undefined && { lane }),
    ...(type !== undefined && { type }),
  };
  const found = await connect().get<Found>('/admin/issues', query);
  if (json) console.log(JSON.stringify(found));
  else console.log(found.issues.length === 0 ? 'No such issues.' : tableOf(found.issues));
  for (const name of found.away)
    console.error(`warning: ${name} does not answer; its issues are missing here`);
  return 0;
}

const tableOf = (issues: readonly Issue[]): string =>
  formatTable(
    ['ISSUE', 'STATE', 'NOW', 'KIND', 'LANE', 'TYPE', 'ERROR', 'FIRST SEEN', 'LAST SEEN'],
    issues.map((issue) => [
      issue.id,
      issue.state,
      String(issue.failures),
      issue.kind,
      issue.lane ?? '-',
      issue.type,
      issue.error ?? '',
      toTheSecond(issue.first_seen_at),
      toTheSecond(issue.last_seen_at),
    ]),
  );

const show = (ids: readonly string[], json: boolean): Promise<number> =>
  showEach<Issue>(connect, ids, json, {
    pathOf,
    describe: (issue) => factsTable('ISSUE', issue, 'id'),
    unknown: (id) => `The issue ${id} does not exist.`,
  });

const REPLAY_OPTIONS = {
  'dry-run': { about: 'show the plan: what would be done' },
  yes: OPTION.yes,
  reason: OPTION.reason,
  json: OPTION.json,
};

interface Replayed {
  readonly results: readonly IssueResult[];
  readonly left: number;
}

async function replay(
  { 'dry-run': isDryRun, yes, reason, json }: Values<typeof REPLAY_OPTIONS>,
  [given = '']: readonly string[],
): Promise<number> {
  const path = `${pathOf(given)}/replay`;
  const why = readReason(reason);
  const api = connect();
  const ask = (dry_run: boolean) =>
    api.post<Replayed>(path, { dry_run, ...(why !== null && { reason: why }) });
  const plan = await ask(true);
  if (isDryRun || plan.results.length === 0) return report(plan, json);
  if (!yes) {
    console.error(countsOf(plan));
    if (!(await confirm(`Replay ${plan.results.length}?`))) {
      console.error('Nothing was changed.');
      return 1;
    }
  }
  let last = plan;
  return reportSteps<IssueResult>(
    // Each call takes the oldest. One that left nothing but what cannot be replayed would take the same again.
    async (done) => {
      do {
        last = await ask(false);
        done.push(...last.results);
      } while (last.left > 0 && last.results.every(isDone));
    },
    (results) => report({ results, left: last.left }, json),
  );
}

function report(replayed: Replayed, asJson: boolean): number {
  console.log(asJson ? JSON.stringify(replayed) : countsOf(replayed));
  return replayed.results.every(isDone) ? 0 : 1;
}

/** How many of each outcome, with an id to look at. */
function countsOf({ results, left }: Replayed): string {
  const byOutcome = new Map<string, string[]>();
  for (const { id, outcome } of results) byOutcome.set(outcome, [...(byOutcome.get(outcome) ?? []), id]);
  if (byOutcome.size === 0) return 'Nothing is left of it.';
  const table = formatTable(
    ['OUTCOME', 'NUMBER', 'EXAMPLE'],
    [...byOutcome].map(([outcome, ids]) => [outcome, String(ids.length), ids[0] ?? '']),
  );
  return left > 0 ? `${table}\n${left} more come after these.` : table;
}

async function resolve(
  { reason, json }: Values<{ reason: typeof OPTION.reason; json: typeof OPTION.json }>,
  ids: readonly string[],
): Promise<number> {
  const why = readReason(reason);
  const paths = ids.map(pathOf);
  const api = connect();
  for (const path of paths) {
    const issue = await api.post<Issue>(`${path}/resolve`, why === null ? {} : { reason: why });
    console.log(json ? JSON.stringify(issue) : `The issue ${issue.id} is resolved until it comes back.`);
  }
  return 0;
}

export const command: Group = {
  about: `See what fails, each kind of failure once, and replay or resolve it

Failures are alike when they have the same lane (a pool, a handler, an endpoint, a call site or a tenant), type and shape of the error. In
ERROR, # stands for an id, a number or an address, and "…" for quoted text.`,
  environment: { ...VARIABLES.server, ...VARIABLES.operator },
  exits: ['when all is done', 'when something was not'],
  default: 'list',
  actions: {
    list: action({
      about: 'List issues, those seen last first',
      options: LIST_OPTIONS,
      examples: ['sluice issues list --lane demo_concert_2026'],
      run: list,
    }),
    show: showAction(
      'Show all that is known about some',
      '<id> …',
      'sluice issues show 5d41402a-bc4b-2a76-b971-9d911017c592',
      show,
    ),
    replay: action({
      about: `Send all that failed alike round again, which resolves the issue

Shows the plan, and asks. What fails once more opens the issue again.`,
      args: '<id>',
      options: REPLAY_OPTIONS,
      examples: ["sluice issues replay 5d41402a-bc4b-2a76-b971-9d911017c592 --reason 'the hook is mended'"],
      run: replay,
    }),
    resolve: action({
      about: 'Call issues resolved until they come back; what failed stays where it is',
      args: '<id> …',
      options: { reason: OPTION.reason, json: OPTION.json },
      examples: ["sluice issues resolve 5d41402a-bc4b-2a76-b971-9d911017c592 --reason 'a test'"],
      run: resolve,
    }),
  },
};
