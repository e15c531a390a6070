// `sluice status`: the numbers of a running server, once or as they change.

import { readEvents } from '#client/event_stream.ts';
import type { LiveSample } from '#core/console/sample.ts';
import { AdminClient, ApiError } from '../admin/client.ts';
import { action } from './grammar.ts';
import { readConnection, VARIABLES } from './operator.ts';
import { statusLine, statusPage } from './status_page.ts';
import { createPaint } from './table.ts';

/** How long the first numbers may take: a sample a second, and rates need two. */
const PATIENCE_MS = 5_000;
const CLEAR_SCREEN = '\u001b[H\u001b[2J';

async function once(api: AdminClient, url: string, asJson: boolean): Promise<number> {
  const late = AbortSignal.timeout(PATIENCE_MS);
  let seen: LiveSample | undefined;
  try {
    for await (const sample of samples(api, late)) {
      // Rates compare two looks; a database that is away gives none, however long one waits.
      const isComplete = seen !== undefined || sample.claims_per_sec !== null;
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

function isWell({ db1, db2, cells = [] }: LiveSample): boolean {
  return db1.ok && db2.ok && cells.every(({ ok }) => ok);
}

export const command = action({
  about: `Show the numbers of a running server

Claims and tickets a second, what waits on the queue and for how long, dead letters, webhooks, both databases, and what
is left in each pool. The server already has these numbers; asking for them costs nothing.`,
  options: {
    watch: { about: 'show them every second, until Ctrl-C' },
    json: { about: 'print JSON, for machines; with --watch one line a second' },
  },
  environment: { ...VARIABLES.server, NO_COLOR: 'no colour, also on a terminal' },
  exits: ['when both databases answer', 'when one does not, or the server does not answer'],
  examples: ['sluice status', 'sluice status --watch', 'sluice status --json | jq .queue_depth'],
  run({ watch: goesOn, json }) {
    const connection = readConnection(process.env);
    return (goesOn ? watch : once)(new AdminClient(connection), connection.url, json);
  },
});
