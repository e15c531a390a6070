import { rmSync } from 'node:fs';
import { relative } from 'node:path';
import { parseArgs } from 'node:util';
import type { Worker } from '../bridge/worker.ts';
import { startServer } from '../server/server.ts';
import { envFile } from '../stack/env_file.ts';
import { StackError } from '../stack/failure.ts';
import { portTaken } from '../stack/gateway.ts';
import { writePrivateFile } from '../stack/keys.ts';
import { portIsFree } from '../stack/ports.ts';
import { refuseIfRunning } from '../stack/run_files.ts';
import { layout, PROJECT_ROOT, readSettings, type Settings } from '../stack/settings.ts';
import { type Stack, startStack } from '../stack/stack.ts';
import type { Command } from './command.ts';
import { summarize } from './dev_summary.ts';
import { startDevWorkers } from './dev_workers.ts';

const usage = `sluice dev

Starts everything on this machine: two Postgres databases with Sluice's schema, PostgREST and a gateway in
front of each, the Edge Functions, the Sluice server, and the workers that carry claims from DB1 to DB2. Keeps
its data in .sluice/ and stops on Ctrl-C.

Environment:
  SLUICE_PORT    port of the server (default 4000)
  DB1_API_PORT   port of DB1's API (default 54321)
  DB2_API_PORT   port of DB2's API (default 54421)
  SLUICE_DIR     where data, secrets and the env file live (default .sluice)
  POSTGREST_BIN  another PostgREST than the one npm installed
  DENO_BIN       another Deno than the one npm installed, for the functions
  SLUICE_WEBHOOK_ALLOWED_HOSTS
                 hosts, with commas between, that webhooks may have although they are private
  SLUICE_LOG     debug, info, warn (default here), error or silent

Examples:
  npm start
  SLUICE_DIR=/tmp/second SLUICE_PORT=4001 DB1_API_PORT=55321 DB2_API_PORT=55421 npm start
`;

const STOP_SIGNALS: NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

const say = (line: string) => console.log(`  ${line}`);

async function run(args: string[]): Promise<number> {
  parseArgs({ args, options: {} });
  const settings = readSettings(process.env);
  // People read this terminal; a line of JSON per start and stop is for machines.
  process.env.SLUICE_LOG ??= 'warn';
  const stopping = new AbortController();
  let stack: Stack | undefined;
  const onSignal = () => {
    if (stopping.signal.aborted) {
      void stack?.stop('immediate');
      return;
    }
    console.log('\nStopping (once more to hurry)');
    stopping.abort();
  };
  for (const signal of STOP_SIGNALS) process.on(signal, onSignal);
  try {
    refuseIfRunning(layout(settings.dir).run);
    if (settings.sluicePort !== 0 && !(await portIsFree(settings.sluicePort))) {
      throw portTaken(settings.sluicePort, 'the Sluice server', 'SLUICE_PORT');
    }
    console.log('Starting Sluice');
    stack = await startStack({
      ...settings,
      projectRoot: PROJECT_ROOT,
      functionEnv: functionEnv(process.env),
      say,
      signal: stopping.signal,
    });
    return await serveUntilStopped(stack, settings, stopping.signal);
  } catch (error) {
    // A start that was called off has cleaned up after itself and ended as it was asked to.
    if (stopping.signal.aborted && error === stopping.signal.reason) return 0;
    throw error;
  } finally {
    for (const signal of STOP_SIGNALS) process.off(signal, onSignal);
  }
}

/** What of our own settings the functions go by too. */
function functionEnv({ SLUICE_LOG = 'warn', SLUICE_WEBHOOK_ALLOWED_HOSTS = '' }: NodeJS.ProcessEnv) {
  return { SLUICE_LOG, SLUICE_WEBHOOK_ALLOWED_HOSTS };
}

async function serveUntilStopped(stack: Stack, settings: Settings, stopSignal: AbortSignal): Promise<number> {
  try {
    const workers = startDevWorkers(stack);
    try {
      return await serve(stack, settings, workers, stopSignal);
    } finally {
      await workers.stop();
    }
  } finally {
    await stack.stop();
    console.log('Stopped.');
  }
}

async function serve(
  stack: Stack,
  settings: Settings,
  workers: Worker,
  stopSignal: AbortSignal,
): Promise<number> {
  const envPath = layout(settings.dir).env;
  const server = await startServer({
    port: settings.sluicePort,
    // What runs here has a demo's keys: it is for this machine alone.
    host: '127.0.0.1',
    db1Url: stack.db1.cluster.url,
    db2Url: stack.db2.cluster.url,
    adminKey: stack.secrets.adminKey,
    jwtSecret: stack.secrets.db1JwtSecret,
    onClaimed: workers.wake,
  });
  try {
    writePrivateFile(envPath, envFile(stack, server.url));
    console.log(summarize(stack, server.url, asSeenFromHere(envPath)));
    const failure = await Promise.race([stack.failed, aborted(stopSignal)]);
    if (failure !== undefined) {
      throw new StackError(failure, '`npm start` recovers what was committed; the log says why it ended');
    }
    return 0;
  } finally {
    rmSync(envPath, { force: true });
    await server.stop();
  }
}

function asSeenFromHere(path: string): string {
  const short = relative('', path);
  return short.startsWith('..') ? path : short;
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
}

export const dev: Command = { summary: 'start everything on this machine (npm start)', usage, run };
