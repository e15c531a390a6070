// What `calls send` and `webhooks send` share: where the server is, the request, and its answer.

import { StackError } from '../failure.ts';

const TIMEOUT_MS = 30_000;

export interface Answer {
  readonly status: number;
  readonly text: string;
}

export async function post(url: string, request: RequestInit): Promise<Answer> {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await fetch(url, { ...request, method: 'POST', signal });
    return { status: response.status, text: await response.text() };
  } catch (error) {
    throw new StackError(
      `no server answers at ${url}`,
      'is it running? --to or SLUICE_URL says where',
      error,
    );
  }
}

/** A proxy in front of the server may answer with a page of its own: then it is text. */
export function asJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export function need(name: string, option: string, env: NodeJS.ProcessEnv): string {
  const value = env[name];
  if (value) return value;
  throw new StackError(`${name} is not set, and no stack runs here`, `give ${option}, or run \`npm start\``);
}

export function serverUrl(env: NodeJS.ProcessEnv, path: string): string {
  return `${need('SLUICE_URL', '--to', env).replace(/\/+$/, '')}${path}`;
}
