// Where a result comes from: without it a number says nothing.

import { spawnSync } from 'node:child_process';
import { cpus, platform, release, totalmem } from 'node:os';
import { PROJECT_ROOT } from '../src/project_root.ts';

const BYTES_PER_GIB = 1024 ** 3;

export function machine(): Record<string, string | number> {
  const cores = cpus();
  return {
    cpu: cores[0]?.model.trim() ?? 'unknown',
    cores: cores.length,
    memory_gib: Math.round((totalmem() / BYTES_PER_GIB) * 10) / 10,
    kernel: `${platform()} ${release()}`,
    node: process.version,
  };
}

/** The commit measured; marked where the files differ from it. */
export function commit(): string {
  const head = git('rev-parse', 'HEAD');
  if (head === undefined) return 'unknown';
  return git('status', '--porcelain') === '' ? head : `${head} with changes`;
}

function git(...args: string[]): string | undefined {
  const { status, stdout } = spawnSync('git', args, { cwd: PROJECT_ROOT, encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
}
