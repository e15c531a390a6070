// The stand-in for Stripe of a stack, as a process of its own: it can die, and be slow or down, without the rest.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { StackError } from '../failure.ts';
import { PROGRAM_ROOT } from '../project_root.ts';
import { StandInClient } from '../stripe_stand_in/client.ts';
import { type Child, type ChildOptions, startChild, whenReady } from './child.ts';
import { Keeper } from './keeper.ts';
import { freePort, LOOPBACK, portIsFree } from './ports.ts';
import type { RunFiles } from './run_files.ts';

/** Of its process and its log. */
export const STAND_IN_NAME = 'stripe-stand-in';

/** The stand-in of a stack, kept running. */
export type StripeStandIn = {
  url: string;
  key: string;
  keeper: Keeper<StandInProcess>;
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

/** Nothing depends on it, so a taken one is stepped over; pages of sessions that are still open keep their address. */
const USUAL_PORT = 54_360;

export type KeptStandInOptions = {
  key: string;
  runDir: string;
  journal: string;
  runFiles: RunFiles;
  say(line: string): void;
};

/** It is started by `keeper.start()`; its address is known before. */
export async function keepStandIn(options: KeptStandInOptions): Promise<StripeStandIn> {
  const { key, runDir, journal, runFiles, say } = options;
  const port = (await portIsFree(USUAL_PORT)) ? USUAL_PORT : await freePort();
  const url = `http://${LOOPBACK}:${port}`;
  const logFile = join(runDir, `${STAND_IN_NAME}.log`);
  let webhook: Webhook | undefined;
  const keeper = new Keeper<StandInProcess>({
    title: 'Stripe (stand-in)',
    logFile,
    say,
    launch: (signal) =>
      startStandIn({
        key,
        port,
        journal,
        webhook,
        logFile,
        signal,
        onSpawn: (pid) => runFiles.note(STAND_IN_NAME, pid),
      }),
  });
  return {
    url,
    key,
    keeper,
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
