// One JSON object per line, as the Node side writes them: {at, level, message, …fields}.

import type { Log } from '../ports.ts';

const LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
type Level = (typeof LEVELS)[number];

const SECRET_NAME = /secret|password|token|authorization|key/i;

/** What may be written: no field that names a secret, errors as text with their cause. */
function plain(name: string, value: unknown): unknown {
  if (SECRET_NAME.test(name) && value !== undefined) return '[hidden]';
  if (typeof value === 'bigint') return value.toString();
  if (!(value instanceof Error)) return value;
  const { code } = value as { code?: unknown };
  return { error: value.message, code, stack: value.stack, cause: value.cause };
}

/** `wanted` is the least important level to write; what is none counts as info. */
export function createEdgeLog(wanted: string | undefined, write: (line: string) => void): Log {
  const known = LEVELS.indexOf((wanted ?? 'info') as Level);
  const threshold = known < 0 ? LEVELS.indexOf('info') : known;
  const at =
    (level: Level) =>
    (message: string, fields: Record<string, unknown> = {}): void => {
      if (LEVELS.indexOf(level) < threshold) return;
      write(JSON.stringify({ at: new Date().toISOString(), level, message, ...fields }, plain));
    };
  return {
    debugEnabled: threshold === 0,
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
  };
}
