#!/usr/bin/env node
// Runs the built program. A checkout whose sources differ from its build is built first; an installed package has a build
// and no sources.
import { existsSync, readFileSync } from 'node:fs';

const root = new URL('../', import.meta.url);
const hasSources = existsSync(new URL('src/cli.ts', root));
const build = hasSources
  ? await (await import('../tools/fresh_build.js')).freshBuild()
  : readFileSync(new URL('dist/current', root), 'utf8');
if (build === undefined) process.exitCode = 1;
else await import(`../dist/${build}/cli.js`);
