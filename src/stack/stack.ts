import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { refuseEdited } from '../migrate/edited.ts';
import { copyExtensionFiles } from '../migrate/extensions/extensions.ts';
import { migrate } from '../migrate/migrate.ts';
import { applyPlatform } from '../migrate/platform/platform.ts';
import { withClient } from '../migrate/sql.ts';
import { refuseUnfinishedImport } from '../transfer/unfinished.ts';
import { startControl } from './control.ts';
import { addDemoEndpoints, addDemoSite } from './demo_setup.ts';
import { demoSecrets, stripeValues } from './env_file.ts';
import { hideFromGit } from './folder.ts';
import { FUNCTION_NAMES } from './functions.ts';
import { type Gateway, portTaken, startGateway } from './gateway.ts';
import { Keeper, type Server, type StopMode } from './keeper.ts';
import { startFunctions } from './kept_functions.ts';
import { type ApiKeys, apiKeys, loadSecrets, type Secrets } from './keys.ts';
import { portIsFree } from './ports.ts';
import { type Cluster, machineSettings, startCluster } from './postgres.ts';
import { findPostgrest, type Postgrest, startPostgrest } from './postgrest.ts';
import { claimRunDir, type RunFiles } from './run_files.ts';
import { makeServerDir, reachableDir } from './server_user.ts';
import { layout } from './settings.ts';
import { keepStandIn, STAND_IN_NAME, type StripeStandIn } from './stripe.ts';

export type SideName = 'db1' | 'db2';

/** One database with everything in front of it. */
export type Side = {
  name: SideName;
  /** What people call it. */
  title: string;
  /** Of its Postgres; the same for as long as the stack runs. */
  url: string;
  postgres: Keeper<Cluster>;
  gateway: Gateway;
  keys: ApiKeys;
};

export type Stack = {
  db1: Side;
  db2: Side;
  secrets: Secrets;
  /** Undefined where the person uses Stripe itself. */
  stripe: StripeStandIn | undefined;
  /** Ends everything in order. A second call, `immediate`, does not wait for Postgres to tidy up. */
  stop(mode?: StopMode): Promise<void>;
};

export type StackOptions = {
  dir: string;
  /** The folder that holds db1/ and db2/. */
  projectRoot: string;
  db1ApiPort: number;
  db2ApiPort: number;
  /** Of Postgres. 0 is any free one; left out, the usual one, or any free one where that is taken. */
  db1Port?: number | undefined;
  db2Port?: number | undefined;
  /** The person has a key of Stripe: no stand-in is needed. */
  hasStripe?: boolean;
  /** Settings for the functions beside the addresses and keys of the databases. */
  functionEnv?: Record<string, string>;
  /** Told, a line at a time, what happens. */
  say(line: string): void;
  /** Ends a start that is under way at its next step. */
  signal?: AbortSignal;
};

// Where the Supabase CLI puts them; nothing depends on it, so a taken one is simply stepped over.
const USUAL_POSTGRES_PORT: Record<SideName, number> = { db1: 54322, db2: 54422 };

// As in each side's config.toml.
const API_SCHEMAS: Record<SideName, string[]> = { db1: ['public'], db2: ['public', 'webhook', 'calls'] };

/** What people call the two. */
export const TITLE: Record<SideName, string> = { db1: 'DB1 (intake)', db2: 'DB2 (ledger)' };

/** In the order in which they are stopped: first who asks, then who answers. */
type Parts = {
  doors: { stop(mode?: StopMode): Promise<void> }[];
  functions: Keeper<Server>[];
  standIns: Keeper<Server>[];
  postgrests: Keeper<Postgrest>[];
  clusters: Keeper<Cluster>[];
};

/** What the steps of a start share. */
type Start = {
  options: StackOptions;
  secrets: Secrets;
  home: string;
  runFiles: RunFiles;
  parts: Parts;
};

/** Starts both databases with platform, migrations and seed, PostgREST, the functions and the gateways. All or nothing. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const paths = layout(options.dir);
  mkdirSync(options.dir, { recursive: true });
  hideFromGit(options.dir);
  const runFiles = claimRunDir(paths.run);
  const parts: Parts = { doors: [], functions: [], standIns: [], postgrests: [], clusters: [] };
  const stop = async (mode: StopMode = 'fast') => {
    await stopParts(parts, mode);
    for (const name of [
      'db1-postgrest',
      'db2-postgrest',
      'db1-postgres',
      'db2-postgres',
      STAND_IN_NAME,
      ...FUNCTION_NAMES,
    ])
      runFiles.forget(name);
    runFiles.release();
  };
  try {
    // The ports come first: a taken one is the likeliest trouble, and holding them keeps a rival start out.
    await refuseTakenPort('db1', options.db1Port);
    await refuseTakenPort('db2', options.db2Port);
    const gateways = {
      db1: await openGateway('db1', options.db1ApiPort, 'DB1_API_PORT', parts),
      db2: await openGateway('db2', options.db2ApiPort, 'DB2_API_PORT', parts),
    };
    for (const name of await runFiles.stopLeftovers())
      options.say(`stopped ${name}, left over from a killed run`);
    const secrets = loadSecrets(paths.secrets);
    const home = reachableDir(paths.postgres);
    makeServerDir(join(home, 'extensions'));
    copyExtensionFiles(join(home, 'extensions', 'extension'));
    const start: Start = { options, secrets, home, runFiles, parts };
    const [[db1, db2], stripe] = await allOrError([startSides(gateways, start), startEdge(gateways, start)]);
    options.signal?.throwIfAborted();
    parts.doors.push(await startControl(paths.control, { db1, db2 }, options.say));
    return { db1, db2, secrets, stripe, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Waits for all parts even when one fails: a part that is still starting cannot be stopped. */
async function allOrError<Parts extends Promise<unknown>[]>(
  parts: [...Parts],
): Promise<{ [At in keyof Parts]: Awaited<Parts[At]> }> {
  await Promise.allSettled(parts);
  return Promise.all(parts);
}

async function stopParts(parts: Parts, mode: StopMode): Promise<void> {
  const { doors, functions, standIns, postgrests, clusters } = parts;
  if (mode === 'immediate') {
    await Promise.all(
      [...doors, ...clusters, ...functions, ...standIns, ...postgrests].map((part) => part.stop(mode)),
    );
    return;
  }
  for (const group of [doors, functions, standIns, postgrests, clusters])
    await Promise.all(group.map((part) => part.stop()));
}

async function openGateway(name: SideName, port: number, variable: string, parts: Parts): Promise<Gateway> {
  const gateway = await startGateway({ port, name: `the API of ${TITLE[name]}`, variable });
  parts.doors.push(gateway);
  return gateway;
}

async function refuseTakenPort(name: SideName, port: number | undefined): Promise<void> {
  if (port && !(await portIsFree(port)))
    throw portTaken(port, `Postgres of ${TITLE[name]}`, `${name.toUpperCase()}_PORT`);
}

async function startSides(gateways: Record<SideName, Gateway>, start: Start): Promise<[Side, Side]> {
  const [db1, db2] = await allOrError([keepPostgres('db1', start), keepPostgres('db2', start)]);
  start.options.signal?.throwIfAborted();
  const urls = { db1: db1.url, db2: db2.url };
  await refuseEdited(urls, 'embedded', start.options.projectRoot);
  await refuseUnfinishedImport([db1.url], db2.url);
  return allOrError([startSide('db1', db1, gateways.db1, start), startSide('db2', db2, gateways.db2, start)]);
}

type KeptPostgres = Pick<Side, 'url' | 'postgres'>;

async function startSide(
  name: SideName,
  { url, postgres }: KeptPostgres,
  gateway: Gateway,
  start: Start,
): Promise<Side> {
  const { options, secrets } = start;
  await withClient(url, async (client) => {
    await applyPlatform(client, { authenticatorPassword: secrets.authenticatorPassword });
    const { applied, seeded } = await migrate(client, join(options.projectRoot, name), { seed: true });
    const news = [applied.length > 0 && `${applied.length} migrations applied`, seeded && 'seeded'].filter(
      Boolean,
    );
    options.say(`${TITLE[name]}: ${news.join(', ') || 'schema is up to date'}`);
  });
  if (name === 'db2') {
    await addDemoEndpoints(url);
    await addDemoSite(url, secrets.opsSiteId);
  }
  options.signal?.throwIfAborted();
  await keepRest(name, url, gateway, start);
  return { name, title: TITLE[name], url, postgres, gateway, keys: await sideKeys(name, secrets) };
}

async function keepPostgres(name: SideName, start: Start): Promise<KeptPostgres> {
  const { options, secrets, home, runFiles, parts } = start;
  const usual = USUAL_POSTGRES_PORT[name];
  const wanted = name === 'db1' ? options.db1Port : options.db2Port;
  const startOn = async (port: number | undefined, signal: AbortSignal): Promise<Cluster> => {
    const cluster = await startCluster({
      dir: join(home, name),
      password: secrets.postgresPassword,
      extensionDir: join(home, 'extensions'),
      settings: machineSettings(),
      signal,
      // 0 and undefined are any free one.
      ...(port && { port }),
    });
    runFiles.note(`${name}-postgres`, cluster.pid);
    return cluster;
  };
  const startFirst = async (signal: AbortSignal): Promise<Cluster> => {
    if (wanted !== undefined) return startOn(wanted, signal);
    // Another stack may take the usual port between the look and the start. Whatever else is wrong, is so on any port.
    return (await portIsFree(usual))
      ? startOn(usual, signal).catch(() => startOn(undefined, signal))
      : startOn(undefined, signal);
  };
  let port: number | undefined;
  const postgres = new Keeper<Cluster>({
    title: `${TITLE[name]}: Postgres`,
    logFile: join(home, name, 'server.log'),
    say: options.say,
    // Where it was: everything that talks to it, and `.sluice/env`, knows that address.
    launch: (signal) => (port === undefined ? startFirst(signal) : startOn(port, signal)),
  });
  parts.clusters.push(postgres);
  const cluster = await postgres.start();
  port = cluster.port;
  const isMoved = wanted === undefined && port !== usual;
  options.say(`${TITLE[name]}: Postgres on port ${port}${isMoved ? ` (${usual} is taken)` : ''}`);
  return { url: cluster.url, postgres };
}

/** PostgREST is real or not there at all: without it everything but the REST paths works. */
async function keepRest(name: SideName, url: string, gateway: Gateway, start: Start): Promise<void> {
  const { options, secrets, runFiles, parts } = start;
  const binary = findPostgrest();
  if (binary === undefined) {
    options.say(
      `${TITLE[name]}: no PostgREST for this platform, so /rest/v1 answers 503 (POSTGREST_BIN names one)`,
    );
    return;
  }
  const logFile = join(layout(options.dir).run, `${name}-postgrest.log`);
  const keeper = new Keeper<Postgrest>({
    title: `${TITLE[name]}: PostgREST`,
    logFile,
    say: options.say,
    async launch(signal) {
      const postgrest = await startPostgrest({
        binary,
        databaseUrl: url.replace(/\/\/[^@]*@/, `//authenticator:${secrets.authenticatorPassword}@`),
        jwtSecret: jwtSecretOf(name, secrets),
        schemas: API_SCHEMAS[name],
        logFile,
        signal,
        onSpawn: (pid) => runFiles.note(`${name}-postgrest`, pid),
      });
      gateway.upstreams.restPort = postgrest.port;
      return postgrest;
    },
    onGone() {
      delete gateway.upstreams.restPort;
    },
  });
  parts.postgrests.push(keeper);
  await keeper.start();
  options.say(`${TITLE[name]}: REST on ${gateway.url}/rest/v1`);
}

/** The functions, and before them the stand-in for Stripe, whose address they know. */
async function startEdge(
  gateways: Record<SideName, Gateway>,
  start: Start,
): Promise<StripeStandIn | undefined> {
  const { options, secrets, runFiles, parts } = start;
  const paths = layout(options.dir);
  const stripe = options.hasStripe
    ? undefined
    : await keepStandIn({
        key: secrets.stripeApiKey,
        runDir: paths.run,
        journal: paths.stripe,
        runFiles,
        onKeeper: (keeper) => parts.standIns.push(keeper),
        say: options.say,
      });
  await startFunctions({
    projectRoot: options.projectRoot,
    runDir: paths.run,
    gateway: gateways.db1,
    env: {
      ...options.functionEnv,
      ...demoSecrets(secrets),
      ...stripeValues({ stripe }),
      SLUICE_HOOK_SECRET: secrets.hookSecret,
      SLUICE_JWT_SECRET: secrets.db1JwtSecret,
      ...(await databaseEnv('db1', gateways.db1, secrets)),
      ...(await databaseEnv('db2', gateways.db2, secrets)),
    },
    runFiles,
    onKeeper: (keeper) => parts.functions.push(keeper),
    say: options.say,
  });
  return stripe;
}

/** The three names under which a function knows a database. */
async function databaseEnv(
  name: SideName,
  gateway: Gateway,
  secrets: Secrets,
): Promise<Record<string, string>> {
  const keys = await sideKeys(name, secrets);
  const prefix = `${name.toUpperCase()}_SUPABASE`;
  return {
    [`${prefix}_URL`]: gateway.url,
    [`${prefix}_ANON_KEY`]: keys.anon,
    [`${prefix}_SERVICE_ROLE_KEY`]: keys.serviceRole,
  };
}

function jwtSecretOf(name: SideName, secrets: Secrets): string {
  return name === 'db1' ? secrets.db1JwtSecret : secrets.db2JwtSecret;
}

function sideKeys(name: SideName, secrets: Secrets): Promise<ApiKeys> {
  return apiKeys(`sluice-${name}`, jwtSecretOf(name, secrets), secrets.createdAt);
}
