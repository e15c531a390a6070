// One JSON object per line on stderr: {at, level, message, …fields}. Standard output belongs to the commands.

import type { Log } from '#core/ports.ts';

const LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
type Level = (typeof LEVELS)[number];

const SECRET_NAME = /secret|password|token|authorization|key/i;
const URL_PASSWORD = /(\w+:\/\/[^:/@\s]*:)[^@\s]*@/g;

function readLevel(): Level {
  const wanted = process.env.SLUICE_LOG ?? 'info';
  const level = LEVELS.find((name) => name === wanted);
  if (level === undefined) throw new Error(`SLUICE_LOG is "${wanted}"; use one of ${LEVELS.join(', ')}`);
  return level;
}

/** What may be written: no field that names a secret, no password inside an address, errors as text with their cause. */
function plain(name: string, value: unknown): unknown {
  if (SECRET_NAME.test(name) && value !== undefined) return '[hidden]';
  if (typeof value === 'string') return value.replace(URL_PASSWORD, '$1[hidden]@');
  if (typeof value === 'bigint') return value.toString();
  if (!(value instanceof Error)) return value;
  const { code } = value as { code?: unknown };
  return { error: value.message, code, stack: value.stack, cause: value.cause };
}

export function createLog(
  level: Level = readLevel(),
  write: (line: string) => void = (line) => process.stderr.write(line),
): Log {
  const threshold = LEVELS.indexOf(level);
  const at =
    (own: Level) =>
    (message: string, fields: Record<string, unknown> = {}): void => {
      if (LEVELS.indexOf(own) < threshold) return;
      write(`${JSON.stringify({ at: new Date().toISOString(), level: own, message, ...fields }, plain)}\n`);
    };
  return {
    debugEnabled: threshold === 0,
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
  };
}
