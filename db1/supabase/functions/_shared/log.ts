// One JSON object per line: {at, level, message, …fields}. Node and Deno give it a level and a place to write to.

import type { Log } from './ports.ts';

export const LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type Level = (typeof LEVELS)[number];

const SECRET_NAME = /secret|password|token|authorization|key/i;
const URL_PASSWORD = /(\w+:\/\/[^:/@\s]*:)[^@\s]*@/g;

/** What may be written: no field that names a secret, no password inside an address, errors as text with their cause. */
function plain(name: string, value: unknown): unknown {
  if (SECRET_NAME.test(name) && value !== undefined) return '[hidden]';
  if (typeof value === 'string') return value.replace(URL_PASSWORD, '$1[hidden]@');
  if (typeof value === 'bigint') return value.toString();
  if (!(value instanceof Error)) return value;
  const { code } = value as { code?: unknown };
  return { error: value.message, code, stack: value.stack, cause: value.cause };
}

/** `level` is the least important one to write; a line comes without its end, and with the `common` fields. */
export function createLineLog(
  level: Level,
  write: (line: string) => void,
  common: Readonly<Record<string, unknown>> = {},
): Log {
  const threshold = LEVELS.indexOf(level);
  const at =
    (own: Level) =>
    (message: string, fields: Record<string, unknown> = {}): void => {
      if (LEVELS.indexOf(own) < threshold) return;
      write(
        JSON.stringify({ at: new Date().toISOString(), level: own, message, ...common, ...fields }, plain),
      );
    };
  return {
    debugEnabled: threshold === 0,
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
  };
}
