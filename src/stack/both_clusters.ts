// The two databases of a stack without the rest of it, for a command that works on them while nothing else runs.

import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { copyExtensionFiles } from '../migrate/extensions/extensions.ts';
import type { SideName } from '../migrate/sides.ts';
import { hideFromGit } from './folder.ts';
import { loadSecrets, type Secrets } from './keys.ts';
import { type Cluster, machineSettings, startCluster } from './postgres.ts';
import { claimRunDir } from './run_files.ts';
import { makeServerDir, reachableDir } from './server_user.ts';
import { layout } from './settings.ts';

const STOP_SIGNALS: NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];
const SIDES = ['db1', 'db2'] as const;

export function hasClusters(dir: string): boolean {
  return SIDES.every((side) => existsSync(join(layout(dir).postgres, side, 'data', 'PG_VERSION')));
}

/** Starts both on free ports, creating them where they are not, and stops them when `work` has ended or a signal comes. */
export async function withBothClusters<T>(
  dir: string,
  work: (urls: Record<SideName, string>, secrets: Secrets) => Promise<T>,
): Promise<T> {
  const paths = layout(dir);
  mkdirSync(dir, { recursive: true });
  hideFromGit(dir);
  const runFiles = claimRunDir(paths.run);
  const clusters: Cluster[] = [];
  const stop = async () => {
    await Promise.all(clusters.map((cluster) => cluster.stop()));
    for (const side of SIDES) runFiles.forget(`${side}-postgres`);
    runFiles.release();
  };
  // The exit code of a program that a signal ended is 128 and more.
  const onSignal = () => void stop().then(() => process.exit(128));
  for (const signal of STOP_SIGNALS) process.once(signal, onSignal);
  try {
    await runFiles.stopLeftovers();
    const secrets = loadSecrets(paths.secrets);
    const home = reachableDir(paths.postgres);
    const extensionDir = join(home, 'extensions');
    makeServerDir(extensionDir);
    copyExtensionFiles(join(extensionDir, 'extension'));
    const start = async (side: SideName): Promise<string> => {
      const password = secrets.postgresPassword;
      const settings = machineSettings();
      const cluster = await startCluster({ dir: join(home, side), password, extensionDir, settings });
      clusters.push(cluster);
      runFiles.note(`${side}-postgres`, cluster.pid);
      return cluster.url;
    };
    return await work({ db1: await start('db1'), db2: await start('db2') }, secrets);
  } finally {
    for (const signal of STOP_SIGNALS) process.off(signal, onSignal);
    await stop();
  }
}
