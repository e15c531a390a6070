import { resetStack } from '../stack/folder.ts';
import { readSettings } from '../stack/settings.ts';
import { action } from './grammar.ts';

export const command = action({
  about: `Remove the data of the embedded stack

Removes the data and the secrets; the next start makes new ones. Refuses while the stack runs.`,
  environment: { SLUICE_DIR: 'the folder to reset (default .sluice)' },
  examples: ['npm run reset', 'SLUICE_DIR=/tmp/try sluice reset'],
  async run() {
    const { dir } = readSettings(process.env);
    const removed = await resetStack(dir);
    console.log(
      removed ? `Removed the data in ${dir}. \`npm start\` begins anew.` : `Nothing to remove in ${dir}.`,
    );
    return 0;
  },
});
