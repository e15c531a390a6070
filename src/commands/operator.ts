// What many commands share: where the server and the databases are, who is asking, and the options for it.

import { AsyncLocalStorage } from 'node:async_hooks';
import { existsSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { readEnvLines } from '../env_lines.ts';
import { StackError } from '../failure.ts';
import { CELL_VARIABLES, type CellAddress, readCells } from '../fleet/addresses.ts';
import { layout, readSettings } from '../stack/settings.ts';
import { type Action, action, UsageError } from './grammar.ts';

const OWNER = 'owner';
const MAX_NAME_CHARS = 100;

/** Options that many commands take. */
export const OPTION = {
  json: { about: 'print JSON, for machines' },
  reason: { value: 'TEXT', about: 'why, for the audit log' },
  yes: { about: 'do not ask; needed without a terminal' },
};

/** `list` without filters. */
export function listAction(about: string, example: string, list: (json: boolean) => Promise<number>): Action {
  const options = { json: OPTION.json };
  return action({ about, options, examples: [example], run: ({ json }) => list(json) });
}

/** `show` by ids or names. */
export function showAction(
  about: string,
  args: '<id> …' | '<pool> …',
  example: string,
  show: (ids: readonly string[], json: boolean) => Promise<number>,
): Action {
  const options = { json: OPTION.json };
  return action({ about, args, options, examples: [example], run: ({ json }, ids) => show(ids, json) });
}

/** Variables that many commands read. */
export const VARIABLES = {
  server: {
    'SLUICE_URL, SLUICE_ADMIN_KEY': 'the server and its key (default: those of the stack in .sluice)',
    SLUICE_OPERATOR_KEY: 'your own key, instead of SLUICE_ADMIN_KEY: the audit log names you',
  },
  databases: {
    'DB1_URL, DB2_URL':
      'Postgres addresses of the intake and the ledger, each with one host or several (default: those of the stack in .sluice)',
    ...CELL_VARIABLES,
  },
  operator: {
    SLUICE_OPERATOR_KEY:
      'your key: your role is checked and the audit log names you; without it you act as the owner',
  },
};

export interface Connection {
  url: string;
  key: string;
}

/** From the environment, else from what `npm start` left in .sluice/env. */
export function readConnection(env: NodeJS.ProcessEnv): Connection {
  const { SLUICE_OPERATOR_KEY: own } = env;
  const { SLUICE_URL: url, SLUICE_ADMIN_KEY: adminKey } = withStack(env, ['SLUICE_URL', 'SLUICE_ADMIN_KEY']);
  const key = own || adminKey;
  if (!url || !key) {
    throw new StackError(
      'SLUICE_URL and SLUICE_OPERATOR_KEY are not set, and no stack runs here',
      'set both, or start one with `npm start`',
    );
  }
  return { url, key };
}

/** As readConnection. */
export function readDatabaseUrls(env: NodeJS.ProcessEnv): DatabaseUrls {
  const found = withStack(env, ['DB1_URL', 'DB2_URL', 'SLUICE_CELLS']);
  const cells = readCells(found);
  const [first] = cells;
  return { cells, ...(first && { db1Url: first.url }), ...(found.DB2_URL && { db2Url: found.DB2_URL }) };
}

export interface DatabaseUrls {
  /** All intakes, in their order. */
  readonly cells: readonly CellAddress[];
  /** The first of them. */
  readonly db1Url?: string;
  readonly db2Url?: string;
}

/** The secret that signs hooks. The stack's own is used only with the stack's own databases. */
export function readHookSecret(env: NodeJS.ProcessEnv): string | undefined {
  return env.SLUICE_HOOK_SECRET || withStack(env, ['DB1_URL', 'DB2_URL']).SLUICE_HOOK_SECRET;
}

/**
 * What `npm start` left in .sluice/env, with the environment on top; the environment alone where no stack runs. An empty
 * variable counts as not set.
 */
export function readStackEnv(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value));
  return { ...readEnvFile(layout(readSettings(env).dir).env), ...set };
}

const running = new AsyncLocalStorage<string>();

/** Runs a command for an operator whose key has been looked up. */
export function asOperator<Result>(name: string, run: () => Promise<Result>): Promise<Result> {
  return running.run(name, run);
}

/**
 * Who the audit log names, where no server stands between: the operator, or the owner of the database, beside whom stands the name
 * that this machine has for them. That name proves nothing, and an operator cannot have one of this form.
 */
export function actor(env: NodeJS.ProcessEnv = process.env): string {
  const proved = running.getStore();
  if (proved !== undefined) return proved;
  const name = (env.USER ?? '').replace(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, '?').trim();
  return name === '' ? OWNER : `${OWNER} (${[...name].slice(0, MAX_NAME_CHARS).join('')})`;
}

/** They belong together: all are taken from the environment, or all from the stack. */
function withStack(env: NodeJS.ProcessEnv, names: string[]): NodeJS.ProcessEnv {
  return names.some((name) => env[name]) ? env : readEnvFile(layout(readSettings(env).dir).env);
}

/** `NAME=value` lines; nothing where the file is not. */
function readEnvFile(path: string): Record<string, string> {
  return existsSync(path) ? readEnvLines(readFileSync(path, 'utf8')) : {};
}

/** Whether there is a person to ask. What is asked goes to stderr, so that the output may go into a pipe. */
export function canAsk(): boolean {
  return Boolean(process.stdin.isTTY && process.stderr.isTTY);
}

/** Asks the person at the terminal. Without a terminal it refuses: only --yes answers for a script. */
export async function confirm(question: string): Promise<boolean> {
  if (!canAsk()) throw new UsageError(`no terminal to ask at: ${question} Add --yes`);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}
