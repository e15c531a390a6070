import { rmSync } from 'node:fs';
import { StackError } from '../failure.ts';
import { ALERT_VARIABLES, readAlertSettings } from '../issues/settings.ts';
import { createLog } from '../log.ts';
import { type CollectedMetrics, createMetrics } from '../metrics.ts';
import { MAX_PROCESSES } from '../processes/part.ts';
import { PROJECT_ROOT } from '../project_root.ts';
import { BUYER_VARIABLES, type BuyerSettings, readBuyerSettings } from '../server/buyer_settings.ts';
import { readScrapeSettings } from '../server/scrape_access.ts';
import { type RunningServer, startServer } from '../server/server.ts';
import { demoSecrets, envFile, stripeValues } from '../stack/env_file.ts';
import { portTaken } from '../stack/gateway.ts';
import { isOfStripe, writePrivateFile } from '../stack/keys.ts';
import { portIsFree } from '../stack/ports.ts';
import { refuseIfRunning } from '../stack/run_files.ts';
import { layout, readSettings, type Settings } from '../stack/settings.ts';
import { type Stack, startStack } from '../stack/stack.ts';
import { onStopSignal } from '../stop_signal.ts';
import { openTracing, type Tracing } from '../tracing/tracing.ts';
import { type Handlers, loadHandlers } from '../webhook/handlers.ts';
import { createSecretSource, SECRETS_FILE } from '../webhook/secret_source.ts';
import { start, stop } from './dev_control.ts';
import { type Plan, type Program, planProcesses, startApart } from './dev_processes.ts';
import { summarize } from './dev_summary.ts';
import { type DevWorkers, NO_WORKERS, startDevWorkers } from './dev_workers.ts';
import { action, type Command, type Values } from './grammar.ts';

const STOP_SIGNALS: NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

const say = (line: string) => console.log(`  ${line}`);

const OPTIONS = {
  processes: {
    range: [1, MAX_PROCESSES],
    about:
      'of Sluice, beside the databases: 1 is this process alone, more are one worker and servers (default: what the cores are enough for)',
  },
  'no-workers': {
    about: 'start neither workers nor cron jobs: claims and events wait until you run a worker by hand',
  },
} as const;

async function run({ processes, 'no-workers': isWithoutWorkers }: Values<typeof OPTIONS>): Promise<number> {
  const settings = readSettings(process.env);
  const plan = planProcesses(processes, isWithoutWorkers);
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
  const forget = onStopSignal(STOP_SIGNALS, onSignal);
  try {
    refuseIfRunning(layout(settings.dir).run);
    if (settings.sluicePort !== 0 && !(await portIsFree(settings.sluicePort))) {
      throw portTaken(settings.sluicePort, 'the Sluice server', 'SLUICE_PORT');
    }
    const handlers = await loadHandlers(process.env.SLUICE_HANDLERS, createLog());
    const buyers = await readBuyerSettings(process.env);
    console.log('Starting Sluice');
    stack = await startStack({
      ...settings,
      projectRoot: PROJECT_ROOT,
      functionEnv: functionEnv(process.env, settings),
      // A person who has set a key wants Stripe itself.
      hasStripe: isOfStripe(process.env.STRIPE_API_KEY),
      say,
      signal: stopping.signal,
    });
    const order = { settings, handlers, buyers, isWithoutWorkers, plan };
    return await serveUntilStopped(stack, order, stopping.signal);
  } catch (error) {
    // A start that was called off has cleaned up after itself and ended as it was asked to.
    if (stopping.signal.aborted && error === stopping.signal.reason) return 0;
    throw error;
  } finally {
    forget();
  }
}

/** What of our own settings the functions go by too. A port that the system chooses is not known yet. */
function functionEnv({ SLUICE_LOG = 'warn' }: NodeJS.ProcessEnv, { sluicePort }: Settings) {
  return { SLUICE_LOG, ...(sluicePort !== 0 && { SLUICE_PUBLIC_URL: `http://127.0.0.1:${sluicePort}` }) };
}

interface Order {
  settings: Settings;
  handlers: Handlers;
  buyers: BuyerSettings;
  isWithoutWorkers: boolean;
  plan: Plan;
}

async function serveUntilStopped(stack: Stack, order: Order, stopSignal: AbortSignal): Promise<number> {
  const { settings, plan } = order;
  try {
    const program = await (plan.servers > 0 ? startApart(stack, settings, plan) : startHere(stack, order));
    try {
      await stack.stripe?.deliverTo({
        url: `${program.url}/webhooks/stripe`,
        secret: stack.secrets.stripeWebhookSecret,
      });
      return await showUntilStopped(stack, order, program.url, stopSignal);
    } finally {
      await program.stop();
    }
  } finally {
    await stack.stop();
    console.log('Stopped.');
  }
}

/** The server and the workers in this process. */
async function startHere(stack: Stack, order: Order): Promise<Program> {
  const { settings, handlers, buyers, isWithoutWorkers } = order;
  const metrics = createMetrics();
  const tracing = await openTracing('sluice', process.env, createLog());
  const workers = isWithoutWorkers ? NO_WORKERS : startDevWorkers(stack, handlers, metrics, tracing.tracer);
  const stopWorkers = async (): Promise<void> => {
    await workers.stop();
    await tracing.stop();
  };
  try {
    const server = await startDemoServer(stack, settings, { handlers, buyers, metrics, tracing, workers });
    return {
      url: server.url,
      async stop() {
        await server.stop();
        await stopWorkers();
      },
    };
  } catch (error) {
    await stopWorkers();
    throw error;
  }
}

interface DemoParts {
  handlers: Handlers;
  buyers: BuyerSettings;
  metrics: CollectedMetrics;
  tracing: Tracing;
  workers: DevWorkers;
}

function startDemoServer(
  stack: Stack,
  settings: Settings,
  { handlers, buyers, metrics, tracing, workers }: DemoParts,
): Promise<RunningServer> {
  const scrape = readScrapeSettings(process.env);
  if (typeof scrape === 'string') throw new StackError(scrape, 'see `sluice serve --help`');
  const alerts = readAlertSettings(process.env);
  return startServer({
    ...scrape,
    ...buyers,
    ...(alerts && { alerts }),
    port: settings.sluicePort,
    // What runs here has a demo's keys: it is for this machine alone.
    host: '127.0.0.1',
    db1Url: stack.db1.url,
    db2Url: stack.db2.url,
    adminKey: stack.secrets.adminKey,
    jwtSecret: stack.secrets.db1JwtSecret,
    ticketSecrets: [stack.secrets.ticketSecret],
    onClaimed: workers.wakeBridge,
    onRecorded: workers.wakeWebhooks,
    secretOf: createSecretSource({ ...process.env, ...demoSecrets(stack.secrets), ...stripeValues(stack) }),
    apiUrls: { ...process.env, ...stripeValues(stack) },
    handlers,
    metrics,
    tracer: tracing.tracer,
  });
}

async function showUntilStopped(
  stack: Stack,
  { settings, plan }: Order,
  url: string,
  stopSignal: AbortSignal,
): Promise<number> {
  const envPath = layout(settings.dir).env;
  try {
    writePrivateFile(envPath, envFile(stack, url));
    console.log(summarize(stack, url, settings.dir, plan.text));
    await aborted(stopSignal);
    return 0;
  } finally {
    rmSync(envPath, { force: true });
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

const WHAT_RUNS = `Starts two Postgres databases with Sluice's schema, PostgREST and a gateway in front of each, the Edge Functions, the
Sluice server, a stand-in for Stripe, and the workers that carry claims and payments and process webhook events. Sets up the webhook
endpoints stripe, twilio, whatsapp and daily. Keeps its data in .sluice/ and stops on Ctrl-C. When a database, PostgREST
or a function dies, the rest goes on and that one is started again. On two cores the server and the workers share one process; on
more, the workers have their own, and with eight cores or more there are several servers at one port.`;

const up = action({
  about: `Start everything on this machine\n\n${WHAT_RUNS}`,
  options: OPTIONS,
  environment: {
    SLUICE_PORT: 'port of the server (default 4000)',
    DB1_API_PORT: "port of DB1's API (default 54321)",
    DB2_API_PORT: "port of DB2's API (default 54421)",
    'DB1_PORT, DB2_PORT': 'ports of Postgres (default 54322 and 54422, or free ones where those are taken)',
    SLUICE_DIR: 'where data, secrets and the env file live (default .sluice)',
    POSTGREST_BIN: 'another PostgREST than the one npm installed',
    DENO_BIN: 'another Deno than the one npm installed, for the functions',
    STRIPE_API_KEY: 'a key of Stripe: it is used instead of the stand-in, which is not started then',
    SLUICE_HANDLERS: 'a module with webhook handlers of your own (docs/extend_webhooks.md)',
    ...BUYER_VARIABLES,
    ...ALERT_VARIABLES,
    ...SECRETS_FILE,
    OTEL_EXPORTER_OTLP_ENDPOINT: 'a collector of traces (docs/observe.md)',
    SLUICE_LOG: 'debug, info, warn (default here), error or silent',
  },
  exits: ['when it was stopped', 'when it could not start'],
  examples: [
    'npm start',
    'npm start -- --no-workers',
    'npm start -- --processes 2',
    'SLUICE_DIR=/tmp/second SLUICE_PORT=4001 DB1_API_PORT=55321 DB2_API_PORT=55421 npm start',
  ],
  run,
});

export const command: Command = {
  about: `Start everything on this machine, or stop and start one of its databases\n\n${WHAT_RUNS}`,
  actions: { up, stop, start },
  default: 'up',
};
