import { spawn } from 'node:child_process';
import { StackError } from '../src/failure.ts';
import { cleanUpOnExit } from '../test/support/databases.ts';

export type Ended = { code: number | null; stdout: string; stderr: string };

export type RunOptions = { env?: NodeJS.ProcessEnv; maxSec: number };

const MS_PER_SEC = 1_000;

/** Runs a program to its end. It never outlives us, nor its time. */
export async function run(program: string, args: string[], options: RunOptions): Promise<Ended> {
  const child = spawn(program, args, {
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const forget = cleanUpOnExit(() => child.kill('SIGKILL'));
  let isLate = false;
  const alarm = setTimeout(() => {
    isLate = true;
    child.kill('SIGKILL');
  }, options.maxSec * MS_PER_SEC);
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    if (isLate)
      throw new StackError(`${program} did not end within ${options.maxSec} s`, `it said: ${stderr}`);
    return { code, stdout, stderr };
  } finally {
    clearTimeout(alarm);
    forget();
  }
}
