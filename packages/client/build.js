// Makes dist/: one small JavaScript file for every runtime, and its types. `npm pack` runs it.

import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const at = (path) => fileURLToPath(new URL(path, import.meta.url));

rmSync(at('dist'), { recursive: true, force: true });
await build({
  entryPoints: [at('src/index.ts')],
  outfile: at('dist/index.js'),
  bundle: true,
  format: 'esm',
  target: 'es2022',
  minify: true,
});
const { status } = spawnSync('npx', ['tsc', '-p', at('tsconfig.json')], { stdio: 'inherit' });
process.exitCode = status ?? 1;
