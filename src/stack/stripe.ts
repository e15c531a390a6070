// The stand-in for Stripe of a stack, as a process of its own: it can die, and be slow or down, without the rest.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { StackError } from '../failure.ts';
import { PROGRAM_ROOT } from '../project_root.ts';
import { StandInClient } from '../stripe_stand_in/client.ts';
import { type Child, type ChildOptions, startChild, whenReady } from './child.ts';
import { Keeper } from './keeper.ts';
import { portIsFree } from './ports.ts';
import type { RunFiles } from './run_files.ts';

/** Of its process and its log. */
export const STAND_IN_NAME = 'stripe-stand-in';

/** The stand-in of a stack, kept running. */
export type StripeStandIn = {
  url: string;
  key: string;
  /** Where it delivers its events from now on. */
  deliverTo(webhook: Webhook): Promise<void>;
};

type Webhook = { url: string; secret: string };

export type StandInProcess = Pick<Child, 'pid' | 'exited' | 'stop'> & { url: string; port: number };

export type StandInProcessOptions = Pick<ChildOptions, 'logFile' | 'onSpawn' | 'signal'> & {
  /** What it takes as the API key. */
  key: string;
  /** 0 is a free one. */
  port: number;
  /** The file that keeps its books. */
  journal: string;
  /** Where it delivers events to, and what it signs them with. */
  webhook?: Webhook | undefined;
};

export async function startStandIn(options: StandInProcessOptions): Promise<StandInProcess> {
  const { key, port, journal, webhook, logFile, onSpawn, signal } = options;
  const child = startChild({
    binary: process.execPath,
    args: program(),
    logFile,
    onSpawn,
    env: {
      STAND_IN_KEY: key,
      STAND_IN_PORT: String(port),
      STAND_IN_JOURNAL: journal,
      ...(webhook && { STAND_IN_WEBHOOK_URL: webhook.url, STAND_IN_WEBHOOK_SECRET: webhook.secret }),
    },
  });
  const url = await whenReady(child, async () => announcedUrl(logFile), signal);
  if (url !== undefined) return { ...child, url, port: Number(new URL(url).port) };
  await child.stop();
  throw new StackError(
    `the stand-in for Stripe did not start: ${readFileSync(logFile, 'utf8').trimEnd()}`,
    `its log is ${logFile}`,
  );
}

/** A taken one is stepped over. Where it is free, the pages of open sessions keep their address over a restart. */
const USUAL_PORT = 54_360;

export type KeptStandInOptions = {
  key: string;
  runDir: string;
  journal: string;
  runFiles: RunFiles;
  /** Told the keeper before its first start. */
  onKeeper(keeper: Keeper<StandInProcess>): void;
  say(line: string): void;
};

export async function keepStandIn(options: KeptStandInOptions): Promise<StripeStandIn> {
  const { key, runDir, journal, runFiles, onKeeper, say } = options;
  const logFile = join(runDir, `${STAND_IN_NAME}.log`);
  let port: number | undefined;
  let webhook: Webhook | undefined;
  const startOn = (wanted: number, signal: AbortSignal) =>
    startStandIn({
      key,
      port: wanted,
      journal,
      webhook,
      logFile,
      signal,
      onSpawn: (pid) => runFiles.note(STAND_IN_NAME, pid),
    });
  const startFirst = async (signal: AbortSignal) =>
    // Another stack may take the usual port between the look and the start.
    (await portIsFree(USUAL_PORT))
      ? startOn(USUAL_PORT, signal).catch(() => startOn(0, signal))
      : startOn(0, signal);
  const keeper = new Keeper<StandInProcess>({
    title: 'Stripe (stand-in)',
    logFile,
    say,
    // Where it was: the server, the workers and `.sluice/env` know that address.
    launch: (signal) => (port === undefined ? startFirst(signal) : startOn(port, signal)),
  });
  onKeeper(keeper);
  const { url, port: taken } = await keeper.start();
  port = taken;
  say(`Stripe: a stand-in on ${url}`);
  return {
    url,
    key,
    async deliverTo(target) {
      webhook = target;
      await new StandInClient(url, key).deliverTo(target);
    },
  };
}

/** Of the build that runs, or of the sources. */
function program(): string[] {
  const entry = join(PROGRAM_ROOT, 'stripe_stand_in', 'main');
  return existsSync(`${entry}.js`)
    ? [`${entry}.js`]
    : ['--import', import.meta.resolve('tsx'), `${entry}.ts`];
}

function announcedUrl(logFile: string): string | undefined {
  return /^Listening on (http:\S+)$/m.exec(readFileSync(logFile, 'utf8'))?.[1];
}
