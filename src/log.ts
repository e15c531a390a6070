// The log on stderr. Standard output belongs to the commands.

import { createLineLog, LEVELS, type Level } from '#core/log.ts';
import type { Log } from '#core/ports.ts';

function readLevel(): Level {
  const wanted = process.env.SLUICE_LOG ?? 'info';
  const level = LEVELS.find((name) => name === wanted);
  if (level === undefined) throw new Error(`SLUICE_LOG is "${wanted}"; use one of ${LEVELS.join(', ')}`);
  return level;
}

export function createLog(
  level: Level = readLevel(),
  write: (line: string) => void = (line) => process.stderr.write(line),
): Log {
  return createLineLog(level, (line) => write(`${line}\n`));
}
