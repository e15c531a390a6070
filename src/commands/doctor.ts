// `sluice doctor`: is everything as it should be, and if not, what to do.

import { ACK_VARIABLE } from '../db/ack.ts';
import { POOLER_VARIABLES } from '../db/pooler.ts';
import { examine } from '../doctor/examine.ts';
import type { Finding } from '../doctor/finding.ts';
import { StackError } from '../failure.ts';
import { createLog } from '../log.ts';
import { TICKET_VARIABLES } from '../tickets/secrets.ts';
import { action } from './grammar.ts';
import { type Connection, readConnection, readDatabaseUrls, readStackEnv, VARIABLES } from './operator.ts';
import { createPaint, formatTable, type Paint } from './table.ts';

const INDENT = ' '.repeat(6);
const COLOURS = { ok: 'green', warn: 'yellow', fail: 'red', skip: 'dim' } as const;

async function run(json: boolean): Promise<number> {
  const { cells, db2Url } = readDatabaseUrls(process.env);
  if (cells.length === 0 || !db2Url)
    throw new StackError(
      'DB1_URL and DB2_URL are not set, and no stack runs here',
      'set both, or start one with `npm start`',
    );
  const server = connectionOrNone();
  const checks = await examine({
    cells,
    db2Url,
    ...(server && { server }),
    env: readStackEnv(process.env),
    log: createLog(),
  });
  const isWell = checks.every(({ status }) => status !== 'fail');
  console.log(json ? JSON.stringify({ ok: isWell, checks }) : page(checks, createPaint()));
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

/** A good finding fits on a line; a bad one is printed in full, however narrow the terminal. */
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

export const command = action({
  about: `Check everything, and say what to do

Looks at both databases and the server, and says of each thing whether it is well and what to do if not: versions,
durability, standbys and Patroni's settings, migrations, rights (those that the migrations grant, and no others), clocks, extensions, cron jobs, workers,
the age of the queue, dead letters, secrets of webhook endpoints, call sites and tickets. Changes nothing.

  ok     as it should be
  warn   works, but an operator should look at it
  fail   does not work, or is open to the wrong people
  skip   could not be looked at, or is not used here`,
  options: { json: { about: 'print JSON, for machines: {"ok": …, "checks": […]}' } },
  environment: {
    ...VARIABLES.databases,
    ...ACK_VARIABLE,
    ...POOLER_VARIABLES,
    ...TICKET_VARIABLES,
    'DB1_PATRONI_URL, DB2_PATRONI_URL':
      'the REST APIs of Patroni, several with commas (default: port 8008 of each host of an address with several); of several cells a=http://…,b=http://…',
    'SLUICE_URL, SLUICE_ADMIN_KEY':
      'the server and its key (default: likewise; without them the server is skipped)',
    NO_COLOR: 'no colour, also on a terminal',
  },
  exits: ['when nothing failed', 'when something did'],
  examples: ['sluice doctor', `sluice doctor --json | jq '.checks[] | select(.status != "ok")'`],
  run: ({ json }) => run(json),
});
