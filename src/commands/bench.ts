// `sluice bench`: the benchmarks, which live beside the sources and compare with programs that the package does not carry.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { StackError } from '../failure.ts';
import { PROJECT_ROOT } from '../project_root.ts';
import { action, type Values } from './grammar.ts';

const OPTIONS = {
  quick: {
    about: 'everything once, small and within a minute: shows that it runs, proves nothing about speed',
  },
  keep: {
    about:
      'also write bench/summaries/<suite>.json, which git keeps; refuses where the product files changed meanwhile',
  },
  json: { value: 'FILE', about: 'also write the result there, for machines' },
};

async function run({ quick, keep, json }: Values<typeof OPTIONS>, [suite]: [string]): Promise<number> {
  const script = join(PROJECT_ROOT, 'bench', 'run.ts');
  if (!existsSync(script))
    throw new StackError(
      'the benchmarks are not part of the package',
      'run `sluice bench` in a clone of the repository',
    );
  const args = [
    suite,
    ...(quick ? ['--quick'] : []),
    ...(keep ? ['--keep'] : []),
    ...(json === undefined ? [] : [`--json=${json}`]),
  ];
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

export const command = action({
  about: `Run a benchmark on databases of its own

Shows each result beside the least that it must be. A run without --quick writes its raw result to results/bench/, which git
ignores. Works only in a clone of the repository: the package lacks the programs that the benchmarks compare with.`,
  args: '<suite>',
  choices: ['claims', 'bridge', 'webhooks', 'calls', 'console'],
  options: OPTIONS,
  exits: ['when it ran', 'when it could not'],
  examples: ['sluice bench claims', 'sluice bench bridge --quick --json bridge.json'],
  run,
});
