// What `sluice` in a checkout asks before it runs: a build of the sources as they are now.

import { accessSync, constants, existsSync } from 'node:fs';
import { DIST, findBuild, ROOT } from './sources.js';

/** The name of the build, made now where it has to be; undefined where it cannot be made, and stderr says why. */
export async function freshBuild() {
  const found = findBuild();
  if (found !== undefined) return found;
  if (!mayWrite())
    return refuse(
      `the build does not belong to the sources, and this user may not write to ${ROOT}`,
      'run `npm run build` there as the user who owns it',
    );
  const { makeBuild, NoBuildTool, removeOldBuilds } = await import('./build.js');
  try {
    const build = await makeBuild();
    removeOldBuilds(build);
    return build;
  } catch (error) {
    if (error instanceof NoBuildTool)
      return refuse(`Sluice is not built, and ${error.message}`, `run \`npm ci\` in ${ROOT}`);
    // esbuild names the file and the line.
    return refuse(`Sluice cannot be built: ${error.message}`, 'mend the sources, then try again');
  }
}

function mayWrite() {
  try {
    accessSync(existsSync(DIST) ? DIST : ROOT, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function refuse(what, hint) {
  console.error(`error: ${what}\nhint: ${hint}`);
  return undefined;
}
