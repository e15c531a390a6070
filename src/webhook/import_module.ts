// A module that a user brings, in JavaScript or TypeScript. Node 20 cannot load TypeScript, so esbuild makes JavaScript of it,
// in memory: another user could change what lay in a shared temporary folder, and the module's own folder may be read-only.

import { isBuiltin } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { BuildOptions, Plugin } from 'esbuild';
import { StackError } from '../failure.ts';
import { PROJECT_ROOT } from '../project_root.ts';

const TYPESCRIPT = /\.[cm]?tsx?$/;
/** A path that is relative or absolute belongs to the module and goes into the bundle; the rest are packages. */
const PACKAGE = /^[^./]/;

/** `sluice/handlers` is ours wherever the module lies: a checkout need not be installed beside it. */
const OWN_NAME = 'sluice/handlers';
const OWN_FILE = join(PROJECT_ROOT, 'db1', 'supabase', 'functions', '_shared', 'webhook', 'handlers.ts');

/** Marks a question that the plugin itself has asked. */
const ASKED = Symbol('asked');

/** The default export of the module at `path`, as seen from the working folder. `setting` is the variable that names it. */
export async function importDefault(path: string, what: string, setting: string): Promise<unknown> {
  try {
    return defaultOf(await importModule(resolve(path)));
  } catch (error) {
    throw new StackError(
      `${what} in ${path} cannot be loaded: ${error instanceof Error ? error.message : String(error)}`,
      `${setting} names the module`,
      error,
    );
  }
}

/** A module that a compiler made CommonJS of has its default export one level further down. */
function defaultOf(module: { default?: unknown }): unknown {
  const inner = module.default;
  return typeof inner === 'object' && inner !== null && 'default' in inner ? inner.default : inner;
}

export async function importModule(file: string): Promise<{ default?: unknown }> {
  const url = pathToFileURL(file).href;
  if (!TYPESCRIPT.test(file)) return import(url);
  const code = await toJavaScript(file, url);
  return import(`data:text/javascript;base64,${Buffer.from(code).toString('base64')}`);
}

async function toJavaScript(file: string, url: string): Promise<string> {
  const esbuild = await import('esbuild').catch((error: unknown) => {
    throw new StackError(
      'esbuild, which reads handlers in TypeScript, is not installed',
      'install it (`npm install esbuild`), or write the handlers in JavaScript',
      error,
    );
  });
  const options = {
    entryPoints: [file],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    // Without a list of its own esbuild prefers files for bundlers, which Node would not choose.
    conditions: [],
    define: {
      'import.meta.url': JSON.stringify(url),
      'import.meta.filename': JSON.stringify(file),
      'import.meta.dirname': JSON.stringify(dirname(file)),
      __filename: JSON.stringify(file),
      __dirname: JSON.stringify(dirname(file)),
    },
    banner: {
      js: `import { createRequire as $r } from 'node:module'; const require = $r(${JSON.stringify(url)});`,
    },
    // Stack traces name the module instead of all its text.
    footer: { js: `//# sourceURL=${url}` },
    plugins: [packagesByAddress],
    logLevel: 'silent',
  } satisfies BuildOptions;
  try {
    const [output] = (await esbuild.build(options)).outputFiles;
    return output?.text ?? '';
  } finally {
    // It is a process of its own, which has nothing left to do.
    await esbuild.stop();
  }
}

/** Packages stay outside, under the address of their file: a module in memory has no folder to find them from. */
const packagesByAddress: Plugin = {
  name: 'packages by address',
  setup(build) {
    build.onResolve({ filter: PACKAGE }, async ({ path, kind, resolveDir, importer, pluginData }) => {
      if (kind === 'entry-point' || pluginData === ASKED) return undefined;
      if (path === OWN_NAME) return { path: OWN_FILE };
      if (isBuiltin(path)) return { path, external: true };
      const found = await build.resolve(path, { kind, resolveDir, importer, pluginData: ASKED });
      if (found.errors.length > 0) return { errors: found.errors };
      return { path: kind === 'require-call' ? found.path : pathToFileURL(found.path).href, external: true };
    });
  },
};
