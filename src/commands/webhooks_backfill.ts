// `sluice webhooks backfill`: asks the provider what it sent, and records what is missing.

import { SourceError } from '#core/webhook/backfill/ask.ts';
import { type Counts, NOTHING_YET } from '#core/webhook/backfill/backfill.ts';
import { type AskingEndpoint, type Stretch, stretchOf } from '#core/webhook/backfill/source.ts';
import { sourceOf } from '#core/webhook/backfill/sources.ts';
import { createOperatorStore } from '#core/webhook/operators.ts';
import type { Database } from '../db/database.ts';
import { StackError } from '../failure.ts';
import { createLog } from '../log.ts';
import { onStopSignal } from '../stop_signal.ts';
import { API_VARIABLES, backfill as fill, openSource } from '../webhook/backfill.ts';
import { secretsOf } from '../webhook/secret_users.ts';
import { knownSecrets, withDb2 } from './db2.ts';
import { action, UsageError } from './grammar.ts';
import { actor, OPTION, readStackEnv } from './operator.ts';
import { startProgress } from './progress.ts';
import { readMoment, readReason } from './values.ts';

const DAY_MS = 24 * 60 * 60 * 1_000;

export const backfill = action({
  about: `Ask the provider what it sent, and record what is missing

Asks Stripe for its events (undelivered ones first), or Twilio for its calls and messages, and records those that are missing. A new
event takes effect once, through the workers, and is marked "backfilled". A known event stays unchanged. If a run was stopped or
killed, run the same command again. Stripe answers for the last 30 days.`,
  args: '<endpoint>',
  options: {
    since: { value: 'TIME', about: 'from this time on: 2026-02-24 or 2026-02-24T10:00:00Z; needed' },
    until: { value: 'TIME', about: 'up to this time (default: now)' },
    'dry-run': { about: 'only count what is known and what would be recorded' },
    reason: OPTION.reason,
    json: OPTION.json,
  },
  environment: API_VARIABLES,
  exits: ['when the provider was asked for all of it', 'when it was stopped, or the provider refused'],
  examples: [
    'sluice webhooks backfill stripe --since 2026-02-24T10:00:00Z --until 2026-02-24T10:30:00Z',
    'sluice webhooks backfill twilio --since 2026-02-24 --dry-run',
  ],
  async run(values, [name]) {
    const { since, until, json, 'dry-run': dryRun } = values;
    if (since === undefined) throw new UsageError('backfill needs --since');
    const stretch = stretchOf(
      Date.parse(readMoment('--since', since)),
      until === undefined ? Date.now() : Date.parse(readMoment('--until', until)),
    );
    if (stretch.since >= stretch.until) throw new UsageError('--since is not before --until');
    const reason = readReason(values.reason);
    return withDb2(async (db2) => {
      const endpoint = await findEndpoint(db2, name);
      checkReach(endpoint, stretch);
      const { counts, isStopped } = await run(db2, endpoint, stretch, { dryRun, reason });
      report({ endpoint, stretch, counts, dryRun, isStopped }, json);
      return isStopped ? 1 : 0;
    });
  },
});

async function findEndpoint(db2: Database, name: string): Promise<AskingEndpoint> {
  const store = createOperatorStore((called, args) => db2.call(`webhook.${called}`, args));
  const endpoint = await store.findEndpoint(name);
  if (endpoint !== undefined) return endpoint;
  throw new StackError(`unknown endpoint ${name}`, '`sluice webhooks endpoints list` shows them');
}

function checkReach({ provider }: AskingEndpoint, { since }: Stretch): void {
  const source = sourceOf(provider);
  if (source?.keepsDays === undefined) return;
  const earliest = new Date(Date.now() - source.keepsDays * DAY_MS);
  if (since >= earliest) return;
  throw new UsageError(
    `${source.title} keeps its events for ${source.keepsDays} days, and --since is further back`,
    `the earliest it can be is ${new Date(earliest.getTime() + 1_000).toISOString().slice(0, 19)}Z; older payments: sluice reconcile --stripe`,
  );
}

interface Run {
  readonly dryRun: boolean;
  readonly reason: string | null;
}

async function run(
  db2: Database,
  endpoint: AskingEndpoint,
  stretch: Stretch,
  { dryRun, reason }: Run,
): Promise<{ counts: Counts; isStopped: boolean }> {
  const log = createLog();
  const stopping = new AbortController();
  const { signal } = stopping;
  const forget = onStopSignal(['SIGINT', 'SIGTERM'], () => stopping.abort());
  const progress = startProgress(undefined, 'events');
  let counts = NOTHING_YET;
  try {
    const secrets = secretsOf(db2, knownSecrets());
    const open = await openSource(endpoint, { secrets, urls: readStackEnv(process.env), log, signal });
    if (!dryRun) await begin(db2, endpoint, stretch, reason);
    const onPage = (soFar: Counts) => {
      progress.advance(soFar.asked - counts.asked);
      counts = soFar;
      signal.throwIfAborted();
    };
    return { counts: await fill(open, endpoint, stretch, { db2, log, dryRun, onPage }), isStopped: false };
  } catch (error) {
    if (signal.aborted) return { counts, isStopped: true };
    if (error instanceof SourceError) throw new StackError(error.message, error.hint, error);
    throw error;
  } finally {
    progress.end();
    forget();
  }
}

async function begin(
  db2: Database,
  { webhook_id }: AskingEndpoint,
  { since, until }: Stretch,
  reason: string | null,
): Promise<void> {
  await db2.call('webhook.begin_backfill', {
    p_webhook_id: webhook_id,
    p_since: since.toISOString(),
    p_until: until.toISOString(),
    p_actor: actor(),
    p_reason: reason,
  });
}

interface Result {
  readonly endpoint: AskingEndpoint;
  readonly stretch: Stretch;
  readonly counts: Counts;
  readonly dryRun: boolean;
  readonly isStopped: boolean;
}

function report({ endpoint, stretch, counts, dryRun, isStopped }: Result, asJson: boolean): void {
  const { name, provider } = endpoint;
  const since = stretch.since.toISOString();
  const until = stretch.until.toISOString();
  if (asJson) {
    const status = isStopped ? 'stopped' : 'done';
    console.log(
      JSON.stringify({ endpoint: name, provider, since, until, dry_run: dryRun, status, ...counts }),
    );
    return;
  }
  const { asked, known, unhandled, skipped, quarantined } = counts;
  const parts = [
    `${known} known`,
    `${counts.new} ${dryRun ? 'would be new' : 'new'}${unhandled > 0 ? ` (${unhandled} without a handler)` : ''}`,
    `${skipped} skipped`,
    ...(quarantined > 0 ? [`${quarantined} quarantined`] : []),
  ];
  console.log(`${name}, ${since} to ${until}: ${asked} asked, ${parts.join(', ')}.`);
  if (isStopped) console.log('Stopped before the end. Run the same command again to go on.');
}
