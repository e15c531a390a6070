// `sluice dev stop` and `sluice dev start`: an outage of one database, for as long as a person wants it.

import { askControl } from '../stack/control.ts';
import { readSettings } from '../stack/settings.ts';
import { type SideName, TITLE } from '../stack/stack.ts';
import { type Action, action } from './grammar.ts';

const ENVIRONMENT = { SLUICE_DIR: 'the folder of the stack (default .sluice)' };
const EXITS = ['when it is done', 'when no stack runs, or nothing was to be done'] as const;

/** The word was checked against the choices before. */
const ask = async (database: string, verb: 'stop' | 'start'): Promise<SideName> => {
  const name = database as SideName;
  await askControl(readSettings(process.env).dir, name, verb);
  return name;
};

export const stop: Action = action({
  about: `Stop one database of the stack that runs here

The rest of \`npm start\` goes on: without DB2 claims are taken and wait for the ledger, without DB1 webhook events are
taken and claims get 503. It stays stopped until \`sluice dev start\`, or until the next \`npm start\`.`,
  args: '<database>',
  choices: ['db1', 'db2'],
  environment: ENVIRONMENT,
  exits: EXITS,
  examples: ['sluice dev stop db2', 'SLUICE_DIR=/tmp/second sluice dev stop db1'],
  async run(_values, [database]) {
    const name = await ask(database, 'stop');
    console.log(`${TITLE[name]} is stopped. Start it with: sluice dev start ${name}`);
    return 0;
  },
});

export const start: Action = action({
  about: 'Start a database that `sluice dev stop` stopped',
  args: '<database>',
  choices: ['db1', 'db2'],
  environment: ENVIRONMENT,
  exits: EXITS,
  examples: ['sluice dev start db2'],
  async run(_values, [database]) {
    console.log(`${TITLE[await ask(database, 'start')]} runs.`);
    return 0;
  },
});
