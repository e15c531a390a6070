// A mover in a process of its own, so that it can be killed: tells each step on a line.

import { readCells } from '../../src/fleet/addresses.ts';
import { moveTo, withCells } from '../../src/fleet/operate.ts';
import { createLog } from '../../src/log.ts';

const [, , pool = '', to = ''] = process.argv;
const say = (line: string) => process.stdout.write(`${line}\n`);
const outcome = await withCells(readCells(process.env), createLog(), (cells) =>
  moveTo(cells, pool, to, { actor: 'mover', reason: null, onStep: say }),
);
say(outcome);
