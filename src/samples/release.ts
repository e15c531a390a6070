// What runs here, as marks name it: the version, and the build where there is one.

import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { PROGRAM_ROOT, PROJECT_ROOT } from '../project_root.ts';

const BUILD = /^[0-9a-f]{20}$/;
const BUILD_CHARS = 8;

/** SLUICE_RELEASE where it is set, else such as "0.1.0 502625e3". */
export function releaseName(env: NodeJS.ProcessEnv): string {
  if (env.SLUICE_RELEASE) return env.SLUICE_RELEASE;
  const { version } = JSON.parse(readFileSync(join(PROJECT_ROOT, 'package.json'), 'utf8'));
  const folder = basename(PROGRAM_ROOT);
  return BUILD.test(folder) ? `${version} ${folder.slice(0, BUILD_CHARS)}` : String(version);
}
