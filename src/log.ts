// The log on stderr. Standard output belongs to the commands.

import { createLineLog, LEVELS, type Level } from '#core/log.ts';
import type { Log } from '#core/ports.ts';
import { StackError } from './failure.ts';
import { PART_VARIABLE, readPart } from './processes/part.ts';

function readLevel(): Level {
  const wanted = process.env.SLUICE_LOG || 'info';
  const level = LEVELS.find((name) => name === wanted);
  if (level === undefined)
    throw new StackError(`SLUICE_LOG is "${wanted}"`, `use one of ${LEVELS.join(', ')}`);
  return level;
}

export function createLog(
  level: Level = readLevel(),
  write: (line: string) => void = (line) => process.stderr.write(line),
): Log {
  // Of several processes each says which it is.
  const part = readPart(process.env[PART_VARIABLE]);
  return createLineLog(level, (line) => write(`${line}\n`), part && { process: part.index + 1 });
}
