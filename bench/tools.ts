// The load generators: found where Debian puts them, installed where that is allowed.

import { accessSync, constants, existsSync, readdirSync, realpathSync } from 'node:fs';
import { basename, delimiter, join } from 'node:path';
import { StackError } from '../src/failure.ts';
import { ensureDebianPackages } from '../test/pgtap/debian_packages.ts';

const DEBIAN_POSTGRES = '/usr/lib/postgresql';
/** Debian's /usr/bin/pgbench: it comes with the client and only calls the real one, which comes with the server. */
const DEBIAN_WRAPPER = 'pg_wrapper';

export type Tools = { pgbench: string; wrk: string };

export async function findTools(): Promise<Tools> {
  return { pgbench: await findTool('pgbench', 'postgresql-15'), wrk: await findTool('wrk', 'wrk') };
}

async function findTool(name: string, debianPackage: string): Promise<string> {
  const found = lookUp(name);
  if (found !== undefined) return found;
  const reason = await ensureDebianPackages([debianPackage]);
  const installed = lookUp(name);
  if (installed !== undefined) return installed;
  throw new StackError(
    `${name} is missing${reason === undefined ? '' : `: ${reason}`}`,
    `put ${name} on the PATH; on Debian: apt-get install ${debianPackage}`,
  );
}

function lookUp(name: string): string | undefined {
  const onPath = (process.env.PATH ?? '').split(delimiter);
  const versions = existsSync(DEBIAN_POSTGRES) ? readdirSync(DEBIAN_POSTGRES).sort().reverse() : [];
  const folders = [...onPath, ...versions.map((version) => join(DEBIAN_POSTGRES, version, 'bin'))];
  return folders.map((folder) => join(folder, name)).find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return basename(realpathSync(path)) !== DEBIAN_WRAPPER;
  } catch {
    return false;
  }
}
