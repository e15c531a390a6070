// `sluice status`: the numbers of a running server, once or as they change.

import { parseArgs } from 'node:util';
import { readEvents } from '#client/event_stream.ts';
import type { LiveSample } from '#core/console/sample.ts';
import { AdminClient, ApiError } from '../admin/client.ts';
import type { Command } from './command.ts';
import { readConnection } from './operator.ts';
import { createPaint } from './paint.ts';
import { statusLine, statusPage } from './status_page.ts';

const usage = `sluice status [--watch] [--json]

The numbers of a running server: claims and tickets a second, what waits on the queue and for how long, dead letters,
webhooks, both databases, and what is left in each pool. Nothing is counted for it that is not at hand.

Options:
  --watch   go on, every second, until Ctrl-C
  --json    for machines; with --watch a line of JSON a second

Environment:
  SLUICE_URL, SLUICE_ADMIN_KEY   the server and its key (default: those of the stack in .sluice)
  NO_COLOR                       no colour, also on a terminal

Exit code: 0 when both databases answer, 1 when one does not or the server is away, 2 when the call was not understood.

Examples:
  sluice status
  sluice status --watch
  sluice status --json | jq .queue_depth
`;

/** How long the first numbers may take: a sample a second, and rates need two. */
const PATIENCE_MS = 5_000;
const CLEAR_SCREEN = '\u001b[H\u001b[2J';

async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: { watch: { type: 'boolean', default: false }, json: { type: 'boolean', default: false } },
  });
  const connection = readConnection(process.env);
  const api = new AdminClient(connection);
  return values.watch ? watch(api, connection.url, values.json) : once(api, connection.url, values.json);
}

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
  // Whoever read this has left: `| head` had enough.
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

function isWell({ db1, db2 }: LiveSample): boolean {
  return db1.ok && db2.ok;
}

export const status: Command = { summary: 'the numbers of a running server', usage, run };
