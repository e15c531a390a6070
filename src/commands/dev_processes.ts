// How many processes `npm start` runs, and how it runs them apart from itself.

import { availableParallelism } from 'node:os';
import { createLog } from '../log.ts';
import type { Order } from '../processes/supervisor.ts';
import { LIMIT_VARIABLES } from '../server/limit_settings.ts';
import { demoSecrets, stripeValues } from '../stack/env_file.ts';
import type { Settings } from '../stack/settings.ts';
import type { Stack } from '../stack/stack.ts';

/** A program of `npm start` that answers requests, and perhaps carries claims. */
export interface Program {
  readonly url: string;
  stop(): Promise<void>;
}

export interface Plan {
  /** Both 0: the server and the workers run in the process of `npm start` itself. */
  readonly servers: number;
  readonly workers: number;
  /** For the summary. */
  readonly text: string;
}

/** Two databases, PostgREST and Deno fill so many cores by themselves: there another process only adds memory. */
const CORES_OF_ONE = 2;
/** Of a claim's work Postgres does most, so a server process needs several cores beside its own. */
const CORES_OF_A_SERVER = 4;
/** Then the databases are the limit. */
const MOST_SERVERS = 4;

/** `wanted` processes, or what the machine has room for: of several, one works and the others serve. */
export function planProcesses(
  wanted: number | undefined,
  isWithoutWorkers: boolean,
  cores: number = availableParallelism(),
): Plan {
  const processes = wanted ?? processesFor(cores);
  const workers = isWithoutWorkers ? 0 : 1;
  const servers = processes - workers;
  const on = `on ${cores} ${cores === 1 ? 'core' : 'cores'}`;
  if (processes === 1)
    return { servers: 0, workers: 0, text: `one ${on}: ${isWithoutWorkers ? '' : 'workers and '}server` };
  const parts = [`${servers} ${servers === 1 ? 'server' : 'servers'}`, ...(workers ? ['1 worker'] : [])];
  return { servers, workers, text: `${processes} ${on}: ${parts.join(', ')}` };
}

function processesFor(cores: number): number {
  if (cores <= CORES_OF_ONE) return 1;
  return 1 + Math.min(MOST_SERVERS, Math.max(1, Math.floor(cores / CORES_OF_A_SERVER)));
}

/** What `serve` and `work` read and `npm start` does not: the stack is complete without. */
const NOT_PASSED: readonly string[] = [
  ...Object.keys(LIMIT_VARIABLES),
  ...['SLUICE_PUBLIC_URL', 'SLUICE_TRUSTED_PROXIES', 'SLUICE_MAX_REQUESTS', 'SLUICE_REDIS_URL'],
  ...['SLUICE_JWKS_URL', 'SLUICE_CELLS', 'SLUICE_METRICS_PORT', 'SLUICE_OPERATOR_KEY'],
  ...['DB1_DIRECT_URL', 'DB2_DIRECT_URL'],
];

/** `sluice serve` and `sluice work` on the databases of the stack. Resolves when all of them listen. */
export async function startApart(stack: Stack, { sluicePort }: Settings, plan: Plan): Promise<Program> {
  const { secrets } = stack;
  const env = {
    ...Object.fromEntries(NOT_PASSED.map((name) => [name, undefined])),
    DB1_URL: stack.db1.url,
    DB2_URL: stack.db2.url,
    SLUICE_ADMIN_KEY: secrets.adminKey,
    SLUICE_JWT_SECRET: secrets.db1JwtSecret,
    SLUICE_TICKET_SECRET: secrets.ticketSecret,
    SLUICE_HOOK_SECRET: secrets.hookSecret,
    SLUICE_PORT: String(sluicePort),
    // What runs here has a demo's keys: it is for this machine alone.
    SLUICE_HOST: '127.0.0.1',
    ...demoSecrets(secrets),
    ...stripeValues(stack),
  };
  const orders = (command: 'serve' | 'work', title: string, count: number): Order[] =>
    Array.from({ length: count }, (_, index) => ({
      name: `${title} ${index + 1}`,
      args: [command],
      env,
      part: { index, of: count },
      isServer: command === 'serve',
    }));
  // Here and not above: with one process nothing of it is needed.
  const { Supervisor } = await import('../processes/supervisor.ts');
  const supervisor = new Supervisor({
    orders: [...orders('serve', 'server', plan.servers), ...orders('work', 'worker', plan.workers)],
    limits: {},
    log: createLog(),
  });
  const url = await supervisor.start();
  return { url: url ?? '', stop: () => supervisor.stop() };
}
