// `sluice doctor`: is everything as it should be, and if not, what to do.

import { parseArgs } from 'node:util';
import { examine } from '../doctor/examine.ts';
import type { Finding } from '../doctor/finding.ts';
import { StackError } from '../failure.ts';
import { createLog } from '../log.ts';
import type { Command } from './command.ts';
import { type Connection, readConnection, readDatabaseUrls, readStackEnv } from './operator.ts';
import { createPaint, type Paint } from './paint.ts';
import { formatTable } from './table.ts';

const usage = `sluice doctor [--json]

Looks at both databases and the server, and says of each thing whether it is well and what to do if not: versions,
durability, migrations, rights (those that the migrations grant, and no others), clocks, extensions, cron jobs, workers,
the age of the queue, dead letters, secrets of webhook endpoints and call sites. Changes nothing.

  ok     as it should be
  warn   works, but somebody should look at it
  fail   does not work, or is open to the wrong people
  skip   could not be looked at, or is not used here

Options:
  --json   for machines: {"ok": …, "checks": […]}

Environment:
  DB1_URL, DB2_URL               Postgres addresses of the intake and the ledger (default: those of the stack in .sluice)
  SLUICE_URL, SLUICE_ADMIN_KEY   the server and its key (default: likewise; without them the server is skipped)
  NO_COLOR                       no colour, also on a terminal

Exit code: 0 when nothing failed, 1 when something did, 2 when the call was not understood.

Examples:
  sluice doctor
  sluice doctor --json | jq '.checks[] | select(.status != "ok")'
`;

const INDENT = ' '.repeat(6);
const COLOURS = { ok: 'green', warn: 'yellow', fail: 'red', skip: 'dim' } as const;

async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: { json: { type: 'boolean', default: false } } });
  const { db1Url, db2Url } = readDatabaseUrls(process.env);
  if (!db1Url || !db2Url)
    throw new StackError(
      'DB1_URL and DB2_URL are not set, and no stack runs here',
      'set both, or start one with `npm start`',
    );
  const server = connectionOrNone();
  const checks = await examine({
    db1Url,
    db2Url,
    ...(server && { server }),
    env: readStackEnv(process.env),
    log: createLog(),
  });
  const isWell = checks.every(({ status }) => status !== 'fail');
  console.log(values.json ? JSON.stringify({ ok: isWell, checks }) : page(checks, createPaint()));
  return isWell ? 0 : 1;
}

function connectionOrNone(): Connection | undefined {
  try {
    return readConnection(process.env);
  } catch (error) {
    if (error instanceof StackError) return undefined;
    throw error;
  }
}

/** What is well fits on a line; what is not is told in full, however narrow the terminal. */
function page(checks: readonly Finding[], paint: Paint): string {
  const rows = checks.map(({ status, check, found, todo }) => [
    status,
    check,
    todo === undefined ? found : '',
  ]);
  const [header = '', ...lines] = formatTable(['', 'CHECK', 'FOUND'], rows).split('\n');
  const told = checks.flatMap(({ status, found, todo }, index) => {
    const line = paint(COLOURS[status], status) + (lines[index] ?? '').slice(status.length);
    return todo === undefined ? [line] : [line, `${INDENT}${found}`, `${INDENT}→ ${todo}`];
  });
  return [header, ...told].join('\n');
}

export const doctor: Command = { summary: 'check everything, and say what to do', usage, run };
