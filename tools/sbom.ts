/**
 * `npm run --silent sbom`: prints what the package brings, as CycloneDX. npm writes it, of a manifest without what is for
 * development: `npm sbom --omit dev` alone leaves out pg, because a development dependency needs it too (npm/cli#7909).
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundledIn, lockedPackages } from './notices.ts';

export function sbomOf(root: string): string {
  const packages = lockedPackages(root);
  const { name, version, description, license, dependencies, optionalDependencies } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  );
  const bundled = [...bundledIn(root, packages)].map((path) => [
    path.replace('node_modules/', ''),
    packages[path]?.version,
  ]);
  const needed = { ...Object.fromEntries(bundled), ...dependencies };
  const temporary = mkdtempSync(join(tmpdir(), 'sluice-sbom-'));
  try {
    // npm takes the component's name from the folder.
    const cwd = join(temporary, name);
    mkdirSync(cwd);
    for (const file of ['package-lock.json', '.npmrc']) copyFileSync(join(root, file), join(cwd, file));
    const manifest = { name, version, description, license, dependencies: needed, optionalDependencies };
    writeFileSync(join(cwd, 'package.json'), JSON.stringify(manifest));
    // Offline: the lock file knows every version, and nothing else may decide.
    npm(cwd, 'install', '--package-lock-only', '--offline', '--ignore-scripts');
    return npm(cwd, 'sbom', '--package-lock-only', '--sbom-format', 'cyclonedx');
  } finally {
    rmSync(temporary, { recursive: true });
  }
}

function npm(cwd: string, ...args: string[]): string {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  process.stdout.write(sbomOf(fileURLToPath(new URL('..', import.meta.url))));
