// One JSON object per line: {at, level, message, …fields}. Node and Deno give it a level and a place to write to.

import { isFaultOfCode, isUnavailable } from './failure.ts';
import type { Log } from './ports.ts';

export const LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type Level = (typeof LEVELS)[number];

const SECRET_NAME = /secret|password|token|authorization|key/i;
const URL_PASSWORD = /(\w+:\/\/[^:/@\s]*:)[^@\s]*@/g;

/** What may be written: no field that names a secret, no password inside an address, errors as text with their cause. */
function plainer(isTraced: (error: Error) => boolean) {
  return (name: string, value: unknown): unknown => {
    if (SECRET_NAME.test(name) && value !== undefined) return '[hidden]';
    if (typeof value === 'string') return value.replace(URL_PASSWORD, '$1[hidden]@');
    if (typeof value === 'bigint') return value.toString();
    if (!(value instanceof Error)) return value;
    const { code } = value as { code?: unknown };
    const stack = isTraced(value) ? value.stack : undefined;
    return { error: value.message, code, stack, cause: value.cause };
  };
}

/**
 * A stack leads to code, so it is for what the code did wrong: every error of level `error`, and a fault of the code at any level. An
 * outage is expected, and its message says all: with stacks, thousands of refused requests bury every other line.
 */
function needsStack(error: Error, level: Level): boolean {
  return isFaultOfCode(error) || (level === 'error' && !isUnavailable(error));
}

/** `level` is the least important one to write; a line comes without its end, and with the `common` fields. */
export function createLineLog(
  level: Level,
  write: (line: string) => void,
  common: Readonly<Record<string, unknown>> = {},
): Log {
  const threshold = LEVELS.indexOf(level);
  const debugEnabled = threshold === 0;
  const at = (own: Level) => {
    const plain = plainer((error) => debugEnabled || needsStack(error, own));
    return (message: string, fields: Record<string, unknown> = {}): void => {
      if (LEVELS.indexOf(own) < threshold) return;
      write(
        JSON.stringify({ at: new Date().toISOString(), level: own, message, ...common, ...fields }, plain),
      );
    };
  };
  return {
    debugEnabled,
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
  };
}
