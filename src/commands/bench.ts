// `sluice bench`: the benchmarks, which live beside the sources and compare with programs that the package does not carry.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { StackError } from '../failure.ts';
import { PROJECT_ROOT } from '../project_root.ts';
import type { Command } from './command.ts';

const usage = `sluice bench <suite> [--quick] [--json file]

Runs a benchmark on databases of its own, shows what came out beside what must come out, and keeps a full run in
bench/results/. Only in a clone of the repository: the package does not carry what the benchmarks compare with.

Options:
  --quick       everything once, small and within a minute: shows that it runs, proves nothing about speed
  --json file   also writes the result there, for machines

Exit code: 0 when it ran, 1 when it could not, 2 when the call was not understood.

Examples:
  sluice bench claims
  sluice bench bridge --quick --json bridge.json
`;

async function run(args: string[]): Promise<number> {
  const script = join(PROJECT_ROOT, 'bench', 'run.ts');
  if (!existsSync(script))
    throw new StackError(
      'the benchmarks are not part of the package',
      'run `sluice bench` in a clone of the repository',
    );
  const tsx = findTsx();
  // Where the benchmarks run, signals of the terminal reach them by themselves, and they clean up.
  const child = spawn(process.execPath, ['--import', tsx, script, ...args], {
    stdio: 'inherit',
    // tsx would keep what it compiled in the shared temporary folder, and run what it finds there.
    env: { ...process.env, TSX_DISABLE_CACHE: '1' },
  });
  const ignore = (): void => undefined;
  process.on('SIGINT', ignore);
  try {
    return await new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => resolve(code ?? 1));
    });
  } finally {
    process.off('SIGINT', ignore);
  }
}

function findTsx(): string {
  try {
    return import.meta.resolve('tsx');
  } catch (error) {
    throw new StackError(
      'the benchmarks need the packages for development',
      'run `npm ci` without --omit=dev',
      error,
    );
  }
}

export const bench: Command = { summary: 'measure it (in a clone of the repository)', usage, run };
