import { parseArgs } from 'node:util';
import { resetStack } from '../stack/folder.ts';
import { readSettings } from '../stack/settings.ts';
import type { Command } from './command.ts';

const usage = `sluice reset

Removes the data and the secrets of the embedded stack; the next start makes new ones.
Refuses while the stack runs.

Environment:
  SLUICE_DIR   the folder to reset (default .sluice)

Examples:
  npm run reset
  SLUICE_DIR=/tmp/try sluice reset
`;

async function run(args: string[]): Promise<number> {
  parseArgs({ args, options: {} });
  const { dir } = readSettings(process.env);
  const removed = await resetStack(dir);
  console.log(
    removed ? `Removed the data in ${dir}. \`npm start\` begins anew.` : `Nothing to remove in ${dir}.`,
  );
  return 0;
}

export const reset: Command = { summary: 'remove the data of the embedded stack', usage, run };
