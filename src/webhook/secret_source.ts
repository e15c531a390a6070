// Where Node finds the secrets of endpoints and call sites: in a file that is read again when it has changed, then in the
// environment, which a process has as it was started.

import { readFileSync, statSync } from 'node:fs';
import type { SecretSource } from '#core/webhook/secrets.ts';
import { readEnvLines } from '../env_lines.ts';
import { StackError } from '../failure.ts';

export const SECRETS_FILE = {
  SLUICE_SECRETS_FILE:
    'a file of NAME=value lines with secrets of endpoints and call sites, read again when it changes; optional',
};

/** Throws where the file cannot be read. Later on, a file that is away for a moment keeps its last content. */
export function createSecretSource(env: NodeJS.ProcessEnv): SecretSource {
  const path = env.SLUICE_SECRETS_FILE;
  if (!path) return (name) => env[name] || undefined;
  let version = versionOf(path);
  let secrets = read(path);
  return (name) => {
    try {
      const now = versionOf(path);
      if (now !== version) {
        secrets = read(path);
        version = now;
      }
    } catch (error) {
      if (!(error instanceof StackError)) throw error;
    }
    return secrets[name] || env[name] || undefined;
  };
}

function versionOf(path: string): string {
  try {
    const { ino, size, mtimeMs } = statSync(path);
    return `${ino} ${size} ${mtimeMs}`;
  } catch (error) {
    throw unreadable(path, error);
  }
}

function read(path: string): Record<string, string> {
  try {
    return readEnvLines(readFileSync(path, 'utf8'));
  } catch (error) {
    throw unreadable(path, error);
  }
}

function unreadable(path: string, error: unknown): StackError {
  return new StackError(
    `${path} cannot be read`,
    'SLUICE_SECRETS_FILE names a file of NAME=value lines',
    error,
  );
}
