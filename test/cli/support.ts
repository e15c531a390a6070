import { mock } from 'node:test';
import { format } from 'node:util';
import { main } from '../../src/commands/main.ts';

/**
 * `sluice` in this process, which spares a start: one at a time, for what neither takes signals nor looks at the terminal.
 * The environment is `env` and nothing else.
 */
export async function runHere(
  args: string[],
  env: Record<string, string>,
): Promise<{ code: number; stdout: string; stderr: string }> {
  const said = { log: '', error: '' };
  const mocks = (['log', 'error'] as const).map((name) =>
    mock.method(console, name, (...words: unknown[]) => {
      said[name] += `${format(...words)}\n`;
    }),
  );
  const before = process.env;
  process.env = { PATH: before.PATH, SLUICE_LOG: 'silent', ...env };
  try {
    return { code: await main(args), stdout: said.log, stderr: said.error };
  } finally {
    process.env = before;
    for (const each of mocks) each.mock.restore();
  }
}
