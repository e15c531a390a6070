import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { refuseEdited } from '../migrate/edited.ts';
import { copyExtensionFiles } from '../migrate/extensions/extensions.ts';
import { migrate } from '../migrate/migrate.ts';
import { applyPlatform } from '../migrate/platform/platform.ts';
import { withClient } from '../migrate/sql.ts';
import { refuseUnfinishedImport } from '../transfer/unfinished.ts';
import { addDemoEndpoints, addDemoSite } from './demo_setup.ts';
import { demoSecrets } from './env_file.ts';
import { hideFromGit } from './folder.ts';
import {
  type EdgeFunction,
  FUNCTION_NAMES,
  type FunctionName,
  type FunctionOptions,
  findDeno,
  startFunction,
} from './functions.ts';
import { FUNCTIONS_PACKAGE, functionsRoot } from './functions_root.ts';
import { type Gateway, startGateway } from './gateway.ts';
import { type ApiKeys, apiKeys, loadSecrets, type Secrets } from './keys.ts';
import { freePort, portIsFree } from './ports.ts';
import { type Cluster, startCluster } from './postgres.ts';
import { findPostgrest, type Postgrest, startPostgrest } from './postgrest.ts';
import { claimRunDir, type RunFiles } from './run_files.ts';
import { makeServerDir, reachableDir } from './server_user.ts';
import { layout } from './settings.ts';

export type SideName = 'db1' | 'db2';

/** One database with everything in front of it. */
export type Side = {
  name: SideName;
  cluster: Cluster;
  gateway: Gateway;
  keys: ApiKeys;
  postgrest?: Postgrest;
};

export type Stack = {
  db1: Side;
  db2: Side;
  secrets: Secrets;
  /** Settles with the name of the first part that ended although nobody asked it to. */
  failed: Promise<string>;
  /** Ends everything in order. A second call, `immediate`, does not wait for Postgres to tidy up. */
  stop(mode?: StopMode): Promise<void>;
};

export type StackOptions = {
  dir: string;
  /** The folder that holds db1/ and db2/. */
  projectRoot: string;
  db1ApiPort: number;
  db2ApiPort: number;
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

const TITLE: Record<SideName, string> = { db1: 'DB1 (intake)', db2: 'DB2 (ledger)' };

type StopMode = 'fast' | 'immediate';

type Parts = { gateways: Gateway[]; functions: EdgeFunction[]; postgrests: Postgrest[]; clusters: Cluster[] };

/** What the steps of a start share. */
type Start = {
  options: StackOptions;
  secrets: Secrets;
  home: string;
  runFiles: RunFiles;
  parts: Parts;
  isStopping(): boolean;
  fail(what: string): void;
};

/** Starts both databases with platform, migrations and seed, PostgREST, the functions and the gateways. All or nothing. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const paths = layout(options.dir);
  mkdirSync(options.dir, { recursive: true });
  hideFromGit(options.dir);
  const runFiles = claimRunDir(paths.run);
  const parts: Parts = { gateways: [], functions: [], postgrests: [], clusters: [] };
  let stopping = false;
  let fail: (what: string) => void = () => undefined;
  const failed = new Promise<string>((resolve) => {
    fail = resolve;
  });
  const stop = async (mode: StopMode = 'fast') => {
    stopping = true;
    await stopParts(parts, mode);
    for (const name of ['db1-postgrest', 'db2-postgrest', 'db1-postgres', 'db2-postgres', ...FUNCTION_NAMES])
      runFiles.forget(name);
    runFiles.release();
  };
  try {
    // The ports come first: a taken one is the likeliest trouble, and holding them keeps a rival start out.
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
    const start: Start = { options, secrets, home, runFiles, parts, isStopping: () => stopping, fail };
    const [[db1, db2]] = await allOrError([
      startSides(gateways, start),
      startFunctions(gateways.db1, gateways.db2, start),
    ]);
    options.signal?.throwIfAborted();
    return { db1, db2, secrets, failed, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Waits for all even when one fails: what is still starting could not be stopped. */
async function allOrError<Parts extends Promise<unknown>[]>(
  parts: [...Parts],
): Promise<{ [At in keyof Parts]: Awaited<Parts[At]> }> {
  await Promise.allSettled(parts);
  return Promise.all(parts);
}

async function stopParts(parts: Parts, mode: StopMode): Promise<void> {
  if (mode === 'fast') {
    await Promise.all(parts.gateways.map((gateway) => gateway.stop()));
    await Promise.all(parts.functions.map((edgeFunction) => edgeFunction.stop()));
    await Promise.all(parts.postgrests.map((postgrest) => postgrest.stop()));
  }
  await Promise.all(parts.clusters.map((cluster) => cluster.stop(mode)));
  if (mode === 'immediate') {
    await Promise.all(
      [...parts.functions, ...parts.postgrests, ...parts.gateways].map((part) => part.stop()),
    );
  }
}

async function openGateway(name: SideName, port: number, variable: string, parts: Parts): Promise<Gateway> {
  const gateway = await startGateway({ port, name: `the API of ${TITLE[name]}`, variable });
  parts.gateways.push(gateway);
  return gateway;
}

async function startSides(gateways: Record<SideName, Gateway>, start: Start): Promise<[Side, Side]> {
  const [db1, db2] = await allOrError([startPostgres('db1', start), startPostgres('db2', start)]);
  start.options.signal?.throwIfAborted();
  const urls = { db1: db1.url, db2: db2.url };
  await refuseEdited(urls, 'embedded', start.options.projectRoot);
  await refuseUnfinishedImport(urls);
  return allOrError([startSide('db1', db1, gateways.db1, start), startSide('db2', db2, gateways.db2, start)]);
}

async function startSide(name: SideName, cluster: Cluster, gateway: Gateway, start: Start): Promise<Side> {
  const { options, secrets } = start;
  await withClient(cluster.url, async (client) => {
    await applyPlatform(client, { authenticatorPassword: secrets.authenticatorPassword });
    const { applied, seeded } = await migrate(client, join(options.projectRoot, name), { seed: true });
    const news = [applied.length > 0 && `${applied.length} migrations applied`, seeded && 'seeded'].filter(
      Boolean,
    );
    options.say(`${TITLE[name]}: ${news.join(', ') || 'schema is up to date'}`);
  });
  if (name === 'db2') {
    await addDemoEndpoints(cluster.url);
    await addDemoSite(cluster.url, secrets.opsSiteId);
  }
  options.signal?.throwIfAborted();
  const postgrest = await startRest(name, cluster, jwtSecretOf(name, secrets), gateway, start);
  const keys = await sideKeys(name, secrets);
  return { name, cluster, gateway, keys, ...(postgrest && { postgrest }) };
}

async function startPostgres(name: SideName, start: Start): Promise<Cluster> {
  const { options, secrets, home, runFiles, parts } = start;
  const usual = USUAL_POSTGRES_PORT[name];
  const startOn = (wanted: number): Promise<Cluster> =>
    startCluster({
      dir: join(home, name),
      password: secrets.postgresPassword,
      port: wanted,
      extensionDir: join(home, 'extensions'),
    });
  // Another stack may take the usual port between the look and the start. Whatever else is wrong, is so on any port.
  const cluster = (await portIsFree(usual))
    ? await startOn(usual).catch(async () => startOn(await freePort()))
    : await startOn(await freePort());
  const { port } = cluster;
  parts.clusters.push(cluster);
  runFiles.note(`${name}-postgres`, cluster.pid);
  options.say(`${TITLE[name]}: Postgres on port ${port}${port === usual ? '' : ` (${usual} is taken)`}`);
  void cluster.exited.then(() => {
    if (!start.isStopping()) start.fail(`Postgres of ${TITLE[name]} ended; its log is ${cluster.logFile}`);
  });
  return cluster;
}

/** PostgREST is real or not there at all: without it everything but the REST paths works. */
async function startRest(
  name: SideName,
  cluster: Cluster,
  jwtSecret: string,
  gateway: Gateway,
  start: Start,
): Promise<Postgrest | undefined> {
  const { options, secrets, runFiles, parts } = start;
  const binary = findPostgrest();
  if (binary === undefined) {
    options.say(
      `${TITLE[name]}: no PostgREST for this platform, so /rest/v1 answers 503 (POSTGREST_BIN names one)`,
    );
    return undefined;
  }
  const logFile = join(layout(options.dir).run, `${name}-postgrest.log`);
  const databaseUrl = cluster.url.replace(/\/\/[^@]*@/, `//authenticator:${secrets.authenticatorPassword}@`);
  const postgrest = await startPostgrest({
    binary,
    databaseUrl,
    jwtSecret,
    schemas: API_SCHEMAS[name],
    logFile,
    onSpawn: (pid) => runFiles.note(`${name}-postgrest`, pid),
  });
  parts.postgrests.push(postgrest);
  gateway.upstreams.restPort = postgrest.port;
  options.say(`${TITLE[name]}: REST on ${gateway.url}/rest/v1`);
  void postgrest.exited.then(() => {
    if (start.isStopping()) return;
    delete gateway.upstreams.restPort;
    options.say(
      `${TITLE[name]}: PostgREST ended; /rest/v1 answers 503 until the next start. Its log is ${logFile}`,
    );
  });
  return postgrest;
}

/** The functions are there or not: without Deno, and when one ends, everything but its path works. */
async function startFunctions(db1: Gateway, db2: Gateway, start: Start): Promise<void> {
  const { options, secrets } = start;
  const binary = findDeno();
  if (binary === undefined) {
    options.say('Functions: no Deno for this platform, so /functions/v1 answers 503 (DENO_BIN names one)');
    return;
  }
  const projectRoot = functionsRoot(options.projectRoot, join(layout(options.dir).run, 'functions'));
  if (projectRoot === undefined) {
    options.say(
      `Functions: ${FUNCTIONS_PACKAGE} is not installed, so /functions/v1 answers 503 (npm brings it without --omit=optional)`,
    );
    return;
  }
  const env = {
    ...options.functionEnv,
    ...demoSecrets(secrets),
    ...(await databaseEnv('db1', db1, secrets)),
    ...(await databaseEnv('db2', db2, secrets)),
  };
  const ports = new Map<string, number | undefined>(FUNCTION_NAMES.map((name) => [name, undefined]));
  db1.upstreams.functionPorts = ports;
  await Promise.all(
    FUNCTION_NAMES.map((name) =>
      startOneFunction(name, { binary, projectRoot, env }, ports, start).then(
        () => options.say(`Functions: ${db1.url}/functions/v1/${name}`),
        (error: Error) => options.say(`Functions: ${name} answers 503: ${error.message}`),
      ),
    ),
  );
}

async function startOneFunction(
  name: FunctionName,
  common: Pick<FunctionOptions, 'binary' | 'projectRoot' | 'env'>,
  ports: Map<string, number | undefined>,
  start: Start,
): Promise<void> {
  const { options, runFiles, parts } = start;
  const runDir = layout(options.dir).run;
  const logFile = join(runDir, `${name}.log`);
  const edgeFunction = await startFunction({
    ...common,
    name,
    cacheDir: join(runDir, 'deno'),
    logFile,
    onSpawn: (pid) => runFiles.note(name, pid),
  });
  parts.functions.push(edgeFunction);
  ports.set(name, edgeFunction.port);
  void edgeFunction.exited.then(() => {
    if (start.isStopping()) return;
    ports.set(name, undefined);
    options.say(`Functions: ${name} ended and answers 503 until the next start. Its log is ${logFile}`);
  });
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
