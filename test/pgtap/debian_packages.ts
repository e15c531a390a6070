import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { runCommand } from '../run/command.ts';

/** Two runs at once take turns instead of failing on apt's lock. */
const LOCK_TIMEOUT_SEC = 300;
const APT_OPTIONS = ['-y', '--no-install-recommends', '-o', `DPkg::Lock::Timeout=${LOCK_TIMEOUT_SEC}`];

/** Read by the Debian package when it is installed: it should bring programs, not a running server. */
const CREATE_CLUSTER_CONF = '/etc/postgresql-common/createcluster.d/no-main-cluster.conf';

/** Makes sure the Debian packages are there, installing them where that is allowed. Returns why not, if not. */
export async function ensureDebianPackages(names: readonly string[]): Promise<string | undefined> {
  const missing = await missingPackages(names);
  if (missing === undefined) return 'this is not a Debian system';
  if (missing.length === 0) return undefined;
  const wanted = `Debian packages are missing: ${missing.join(' ')}`;
  if (process.getuid?.() !== 0) return `${wanted} (install them, or run as root)`;
  preventMainCluster();
  process.env.DEBIAN_FRONTEND = 'noninteractive';
  const first = await apt('install', missing);
  if (first.code === 0) return undefined;
  // A fresh image has no package lists yet.
  await apt('update', []);
  const second = await apt('install', missing);
  return second.code === 0 ? undefined : `${wanted}, and apt-get cannot install them:\n${second.output}`;
}

/** True when a file came with a Debian package: such files are not ours to replace. */
export async function belongsToPackage(path: string): Promise<boolean> {
  return existsSync(path) && (await runCommand('dpkg-query', ['-S', path], { cwd: '/' })).code === 0;
}

async function missingPackages(names: readonly string[]): Promise<string[] | undefined> {
  if (!existsSync('/usr/bin/dpkg-query') || !existsSync('/usr/bin/apt-get')) return undefined;
  const missing: string[] = [];
  for (const name of names) {
    const { output } = await runCommand('dpkg-query', ['-W', '-f', `\${Status}`, name], { cwd: '/' });
    if (!output.includes('ok installed')) missing.push(name);
  }
  return missing;
}

function apt(verb: string, packages: readonly string[]): ReturnType<typeof runCommand> {
  return runCommand('apt-get', [verb, ...APT_OPTIONS, ...packages], { cwd: '/' });
}

function preventMainCluster(): void {
  if (existsSync(CREATE_CLUSTER_CONF)) return;
  mkdirSync(dirname(CREATE_CLUSTER_CONF), { recursive: true });
  writeFileSync(CREATE_CLUSTER_CONF, '# Written by the tests of sluice.\ncreate_main_cluster = false\n');
}
