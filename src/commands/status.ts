// `sluice status`: the numbers of a running server, once or as they change.

import { readEvents } from '#client/event_stream.ts';
import type { LiveSample } from '#core/console/sample.ts';
import { rangeMs, type SampleHistory } from '#core/console/samples.ts';
import { AdminClient, ApiError } from '../admin/client.ts';
import { action, UsageError } from './grammar.ts';
import { readConnection, VARIABLES } from './operator.ts';
import { historyPage } from './status_history.ts';
import { statusLine, statusPage } from './status_page.ts';
import { createPaint } from './table.ts';

/** How long the numbers may take: a sample every two seconds, later where a database hangs. */
const PATIENCE_MS = 5_000;
const CLEAR_SCREEN = '\u001b[H\u001b[2J';

async function once(api: AdminClient, url: string, asJson: boolean): Promise<number> {
  const late = AbortSignal.timeout(PATIENCE_MS);
  let seen: LiveSample | undefined;
  try {
    for await (const sample of samples(api, late)) {
      // The first is what the server saw before it was asked.
      const isComplete = seen !== undefined;
      seen = sample;
      if (isComplete) break;
    }
  } catch (error) {
    if (!late.aborted) throw error;
  }
  if (seen === undefined)
    throw new ApiError(0, 'no_answer', `${url} sent no numbers`, 'is a proxy holding them back?');
  console.log(asJson ? JSON.stringify(seen) : statusPage(seen, url, createPaint()));
  return isWell(seen) ? 0 : 1;
}

async function watch(api: AdminClient, url: string, asJson: boolean): Promise<number> {
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  // The reader has left: `| head` had enough.
  process.stdout.once('error', stop);
  const paint = createPaint();
  let last: LiveSample | undefined;
  try {
    for await (const sample of samples(api, stopping.signal)) {
      last = sample;
      if (asJson) console.log(JSON.stringify(sample));
      else if (process.stdout.isTTY)
        process.stdout.write(`${CLEAR_SCREEN}${statusPage(sample, url, paint)}\n\nCtrl-C ends this.\n`);
      else console.log(statusLine(sample));
    }
    throw new ApiError(0, 'no_answer', `${url} has ended the connection`, 'has the server been stopped?');
  } catch (error) {
    if (!stopping.signal.aborted) throw error;
  } finally {
    process.off('SIGINT', stop);
    process.off('SIGTERM', stop);
    process.stdout.off('error', stop);
  }
  return last === undefined || isWell(last) ? 0 : 1;
}

async function* samples(api: AdminClient, signal: AbortSignal): AsyncGenerator<LiveSample, void, undefined> {
  for await (const { event, data } of readEvents(await api.stream('/admin/live', signal)))
    if (event === 'sample') yield JSON.parse(data);
}

async function past(
  api: AdminClient,
  since: string,
  of: string | undefined,
  asJson: boolean,
): Promise<number> {
  const isRange = rangeMs(since) !== undefined;
  if (!isRange && Number.isNaN(Date.parse(since)))
    throw new UsageError(
      `--since is "${since}"; it must be a time, or as long as 15m, 1h, 24h, 7d or 30d`,
      'for example: sluice status --since 1h',
    );
  const history = await api.get<SampleHistory>('/admin/samples', {
    ...(isRange ? { range: since } : { from: new Date(since).toISOString() }),
    ...(of && { of }),
  });
  const hasNumbers =
    history.part?.rows.some(([, ...numbers]) => numbers.some((one) => one !== null)) ?? false;
  if (of && !history.parts.includes(of) && !hasNumbers)
    throw new UsageError(
      `there are no numbers of "${of}"`,
      history.parts.length > 0 ? `there are those of: ${history.parts.join(', ')}` : undefined,
    );
  console.log(asJson ? JSON.stringify(history) : historyPage(history, createPaint()));
  return history.databases.every(({ ok }) => ok) ? 0 : 1;
}

function isWell({ db1, db2, cells = [] }: LiveSample): boolean {
  return db1.ok && db2.ok && cells.every(({ ok }) => ok);
}

export const command = action({
  about: `Show the numbers of a running server

Claims and tickets a second, what waits on the queue and for how long, dead letters, webhooks, both databases, and what
is left in each pool. The server already has these numbers; asking for them costs nothing.
With --since it draws what the databases remember: every two seconds of the last hour, every minute of 30 days, and what happened
meanwhile (outages, breakers, failovers, deploys, alerts, what operators did). The console draws the same under History.`,
  options: {
    watch: { about: 'go on, every two seconds, until Ctrl-C' },
    since: {
      value: 'TIME',
      about: 'draw what was: 15m, 1h, 24h, 7d, 30d, or from a time such as 2026-02-24T10:00:00Z',
    },
    of: {
      value: 'PART',
      about: 'with --since: the numbers of one "pool <name>", "lane <n>", "endpoint <name>" or "cell <name>"',
    },
    json: { about: 'print JSON, for machines; with --watch one line for each sample' },
  },
  environment: { ...VARIABLES.server, NO_COLOR: 'no colour, also on a terminal' },
  exits: ['when both databases answer', 'when one does not, or the server does not answer'],
  examples: [
    'sluice status',
    'sluice status --watch',
    'sluice status --since 1h',
    'sluice status --since 24h --of "pool concert_2026"',
    'sluice status --json | jq .queue_depth',
  ],
  run({ watch: goesOn, since, of, json }) {
    if (goesOn && since !== undefined)
      throw new UsageError('--watch and --since exclude each other', 'leave one of them out');
    if (of !== undefined && since === undefined)
      throw new UsageError('--of needs --since', `for example: sluice status --since 1h --of "${of}"`);
    const connection = readConnection(process.env);
    if (since !== undefined) return past(new AdminClient(connection), since, of, json);
    return (goesOn ? watch : once)(new AdminClient(connection), connection.url, json);
  },
});
