import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { StackError } from '../../failure.ts';

const require = createRequire(import.meta.url);

export type ExtensionName = 'pgmq' | 'pgtap' | 'pg_cron' | 'pg_net';

/** What a stack without Docker needs; pgtap only where the development packages are installed. */
export const ALL_EXTENSIONS: ExtensionName[] = ['pgmq', 'pgtap', 'pg_cron', 'pg_net'];

// These two are real and pure SQL, and travel inside npm packages as archives.
const ARCHIVES: Partial<Record<ExtensionName, string>> = {
  pgmq: '@electric-sql/pglite-pgmq',
  pgtap: '@electric-sql/pglite-pgtap',
};
const FOLDER_IN_ARCHIVE = 'share/postgresql/extension';

type ExtensionFiles = { folder: string; control: string; script: string };

/**
 * Copies the control file and the install script of each extension into `targetDir`: the `extension/` folder
 * under an extension_control_path, or the share folder of a Postgres before 18. Files change by rename, so a
 * server that reads at the same moment sees the old file or the new one.
 */
export function copyExtensionFiles(targetDir: string, names: ExtensionName[] = ALL_EXTENSIONS): void {
  // Readable whatever the umask: the server that reads them may run as another user than we do.
  if (mkdirSync(targetDir, { recursive: true })) chmodSync(targetDir, 0o755);
  for (const name of names) {
    withExtensionFiles(name, ({ folder, control, script }) => {
      for (const file of [script, control]) {
        const draft = join(targetDir, `.${file}.${process.pid}`);
        copyFileSync(join(folder, file), draft);
        chmodSync(draft, 0o644);
        renameSync(draft, join(targetDir, file));
      }
    });
  }
}

/** The install script as plain SQL, for servers that let nobody add extension files. */
export function extensionScript(name: ExtensionName): string {
  let text = '';
  withExtensionFiles(name, ({ folder, script }) => {
    text = readFileSync(join(folder, script), 'utf8');
  });
  return text;
}

function standInFolder(name: ExtensionName): string {
  return fileURLToPath(new URL(`./${name}`, import.meta.url));
}

function withExtensionFiles(name: ExtensionName, use: (files: ExtensionFiles) => void): void {
  const archivePackage = ARCHIVES[name];
  if (archivePackage === undefined) {
    use(describe(name, standInFolder(name)));
    return;
  }
  const archive = findArchive(name, archivePackage);
  if (archive === undefined) return;
  const folder = mkdtempSync(join(tmpdir(), 'sluice-extension-'));
  try {
    const tar = spawnSync('tar', ['-xzf', archive, '-C', folder, FOLDER_IN_ARCHIVE], { encoding: 'utf8' });
    if (tar.status !== 0) {
      throw new StackError(`cannot unpack ${archive}: ${tar.stderr || tar.error}`, 'is `tar` installed?');
    }
    use(describe(name, join(folder, FOLDER_IN_ARCHIVE)));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function findArchive(name: ExtensionName, packageName: string): string | undefined {
  try {
    return join(dirname(require.resolve(packageName)), `${name}.tar.gz`);
  } catch (error) {
    // pgtap is a development package: a production install is complete without it.
    if (name === 'pgtap') return undefined;
    throw new StackError(`the npm package ${packageName} is not installed`, 'run `npm ci`', error);
  }
}

function describe(name: ExtensionName, folder: string): ExtensionFiles {
  const control = `${name}.control`;
  const version = /^default_version\s*=\s*'([^']+)'/m.exec(readFileSync(join(folder, control), 'utf8'))?.[1];
  const script = `${name}--${version}.sql`;
  if (!existsSync(join(folder, script))) throw new Error(`${folder} has no ${script}`);
  return { folder, control, script };
}
