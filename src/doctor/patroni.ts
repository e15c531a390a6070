// What Patroni says about the cell of a database, where its REST API can be reached: it is read, never changed.

import { hostOf, hostsOf } from '../db/hosts.ts';

export interface Patroni {
  readonly version: string;
  /** The settings that all members share, as Patroni has them in etcd. */
  readonly config: Readonly<Record<string, unknown>>;
}

const DEFAULT_PORT = 8008;
const ANSWER_MS = 1_000;

/** Undefined where none answers. `given` is one address of the API or several; port 8008 of each host where left out. */
export async function readPatroni(url: string, given: string | undefined): Promise<Patroni | undefined> {
  const hosts = hostsOf(url).map((address) => hostOf(address).replace(/:\d+$/, ''));
  // A single host counts as a cell of Patroni only if `given` names it: any program may listen on port 8008.
  const guessed = hosts.length > 1 ? hosts.map((host) => `http://${host}:${DEFAULT_PORT}`) : [];
  const addresses = given ? given.split(',').map((address) => address.trim()) : guessed;
  return Promise.any(addresses.map(readOne)).catch(() => undefined);
}

async function readOne(address: string): Promise<Patroni> {
  const [state, config] = await Promise.all([readJson(address, '/patroni'), readJson(address, '/config')]);
  const { version } = (state.patroni ?? {}) as { version?: unknown };
  if (typeof version !== 'string') throw new Error(`${address} is not Patroni`);
  return { version, config };
}

async function readJson(address: string, path: string): Promise<Record<string, unknown>> {
  const response = await fetch(new URL(path, address), { signal: AbortSignal.timeout(ANSWER_MS) });
  return (await response.json()) as Record<string, unknown>;
}
