// `npm run build`, and what `npm ci` runs as `prepare`: makes dist/ from the sources. Plain JavaScript that needs esbuild
// alone, so that it also runs where the packages for development are left out.
//
//   dist/current        the name of the build that runs
//   dist/<name>/        a build: the program, what it reads (SQL), and the pages
//   dist/handlers.js    what `sluice/handlers` is; its types are in dist/types
//
// A build is made in a folder of its own and renamed when it is whole: a command that starts meanwhile finds the old one or
// the new one, never half of one.

import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { DIST, findBuild, hashSources, lookAtSources, noteBuild, ROOT } from './sources.js';

const ENTRIES = {
  cli: 'src/cli.ts',
  'stripe_stand_in/main': 'src/stripe_stand_in/main.ts',
  bundle_pages: 'src/console/bundle_pages.ts',
  handlers: 'db1/supabase/functions/_shared/webhook/handlers.ts',
};
/** What the program reads beside itself, under the names that it has in src/. */
const READ_AT_RUN_TIME = /\.(sql|control)$/;

const BUILD = /^[0-9a-f]{20}$/;
const DRAFT = '.building-';
/** A server that started before a rebuild may still load a part of the build that it began with. */
const KEPT_MS = 24 * 60 * 60 * 1_000;
/** A draft that is older was left by a build that was killed. */
const DRAFT_LIFETIME_MS = 600_000;

/** The build tool is not installed; the sources may be fine. */
export class NoBuildTool extends Error {}

/** Builds what the sources hold now and returns its name. */
export async function makeBuild() {
  const esbuild = await loadEsbuild();
  mkdirSync(DIST, { recursive: true });
  for (;;) {
    const look = lookAtSources();
    const build = hashSources();
    const draft = join(DIST, DRAFT + randomUUID());
    try {
      await writeBuild(esbuild, draft);
      // An editor has saved a file meanwhile: the build is neither of the old state nor of the new one.
      if (hashSources() !== build) continue;
      moveInto(draft, join(DIST, build));
    } finally {
      rmSync(draft, { recursive: true, force: true });
    }
    noteBuild(build, look);
    return build;
  }
}

async function loadEsbuild() {
  try {
    const esbuild = await import('esbuild');
    // The package is there without its program where optional packages were left out.
    await esbuild.transform('');
    return esbuild;
  } catch (error) {
    throw new NoBuildTool('esbuild, which builds it, is not installed or cannot run here', {
      cause: error,
    });
  }
}

async function writeBuild(esbuild, outdir) {
  try {
    await esbuild.build({
      absWorkingDir: ROOT,
      entryPoints: Object.entries(ENTRIES).map(([out, file]) => ({ in: file, out })),
      outdir,
      bundle: true,
      // A command loads its own part of the program and no other.
      splitting: true,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      packages: 'external',
      legalComments: 'none',
      logLevel: 'silent',
    });
  } finally {
    await esbuild.stop();
  }
  for (const path of readdirSync(join(ROOT, 'src'), { recursive: true }))
    if (READ_AT_RUN_TIME.test(path)) cpSync(join(ROOT, 'src', path), join(outdir, path));
  const { bundlePages, bundleDocs } = await import(pathToFileURL(join(outdir, 'bundle_pages.js')).href);
  writePages(join(outdir, 'pages'), await bundlePages(join(ROOT, 'console')));
  const docs = await bundleDocs(join(ROOT, 'console'));
  if (docs !== undefined) writePages(join(outdir, 'pages', 'docs'), docs);
}

function writePages(folder, { pages, assets }) {
  mkdirSync(join(folder, 'assets'), { recursive: true });
  for (const [name, content] of pages) writeFileSync(join(folder, name), content);
  for (const [name, content] of assets) writeFileSync(join(folder, 'assets', name), content);
}

function moveInto(draft, target) {
  try {
    renameSync(draft, target);
  } catch (error) {
    // Another command built the same at the same time.
    if (!existsSync(target)) throw error;
  }
}

/** Removes builds of other sources that are older than `keptMs`, and what builds that were killed have left. */
export function removeOldBuilds(current, keptMs = KEPT_MS) {
  const aged = (name) => {
    const path = join(DIST, name);
    // Another command may rename or remove it at this moment; then it is as new as can be.
    const mtimeMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
    return { path, ageMs: Date.now() - mtimeMs };
  };
  const names = readdirSync(DIST);
  const others = names.filter((name) => BUILD.test(name) && name !== current).map(aged);
  const drafts = names.filter((name) => name.startsWith(DRAFT)).map(aged);
  for (const { path } of [
    ...others.filter(({ ageMs }) => ageMs >= keptMs),
    ...drafts.filter(({ ageMs }) => ageMs > DRAFT_LIFETIME_MS),
  ])
    rmSync(path, { recursive: true, force: true });
}

/** For editors and for the package; where TypeScript is not installed nothing asks for them. */
function writeTypes() {
  const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  if (!existsSync(tsc)) return;
  const { status, stdout } = spawnSync(process.execPath, [tsc, '-p', join(ROOT, 'tools')], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`the types of sluice/handlers cannot be written:\n${stdout}`);
}

async function main() {
  try {
    const build = findBuild() ?? (await makeBuild());
    // Nothing of an older build belongs into a package that is about to be packed.
    removeOldBuilds(build, process.env.npm_command === 'pack' ? 0 : KEPT_MS);
    writeTypes();
  } catch (error) {
    if (!(error instanceof NoBuildTool)) throw error;
    // Packages are being installed, and a later command can still build.
    console.error(`Sluice is not built: ${error.message}.`);
  }
}

// Node names the script as it was called, and a module by its real path.
if (realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) await main();
