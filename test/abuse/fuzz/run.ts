// A fuzz of one `sluice serve`: many cases at a time, each judged, the process and its memory watched.

import type { NodePlace } from '../node_place.ts';
import { type FuzzCase, makeCase } from './case.ts';
import { inconsistencies } from './consistency.ts';
import { complaintsOf } from './oracle.ts';
import { type Exchange, exchangeCase } from './wire.ts';

export interface FuzzOptions {
  readonly seed: number;
  readonly requests: number;
  onProgress?(count: number): void;
}

export interface Failure {
  /** Missing where it is about the whole run. */
  readonly index?: number;
  readonly what: string;
  readonly complaints: readonly string[];
}

export interface FuzzReport {
  readonly seed: number;
  readonly requests: number;
  /** How often, by status; "closed" for a connection that was closed without an answer. */
  readonly statuses: Record<string, number>;
  readonly seconds: number;
  readonly rss_mb: { readonly warm: number; readonly end: number };
  readonly failures: readonly Failure[];
}

/** As many as a small crowd; each is a connection of its own. */
const AT_ONCE = 24;
/** A tenth is enough for caches, pools and the JIT to be what they will be. */
const WARM_SHARE = 0.1;
/** The young heap may be about to be collected at one look and just have been at the other. */
export const MAX_GROWTH_MB = 96;
/** More would fill the screen, and the first ones tell as much. */
const MAX_FAILURES = 100;
const MS_PER_SEC = 1_000;

export async function fuzz(
  place: NodePlace,
  { seed, requests, onProgress }: FuzzOptions,
): Promise<FuzzReport> {
  const startedMs = Date.now();
  const statuses: Record<string, number> = {};
  const failures: Failure[] = [];
  const fail = (failure: Failure): void => {
    if (failures.length < MAX_FAILURES) failures.push(failure);
  };
  let next = 0;
  let warm: number | undefined;
  const worker = async () => {
    while (next < requests && place.serve.isRunning()) {
      const index = next++;
      if (index >= requests * WARM_SHARE) warm ??= place.serve.rssMb();
      const asked = await makeCase(seed, index, place);
      const got = await exchangeCase(asked, place.serve.port);
      for (const status of statusesOf(got)) statuses[status] = (statuses[status] ?? 0) + 1;
      const complaints = complaintsOf(asked, got, place.hidden);
      if (complaints.length > 0) fail({ index, what: asked.what, complaints });
      onProgress?.(1);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  const end = place.serve.isRunning() ? place.serve.rssMb() : 0;
  const complaints = await complaintsAtTheEnd(place, warm ?? end, end);
  if (complaints.length > 0) fail({ what: 'the whole run', complaints });
  const seconds = (Date.now() - startedMs) / MS_PER_SEC;
  return { seed, requests: next, statuses, seconds, rss_mb: { warm: warm ?? end, end }, failures };
}

function statusesOf({ answers }: Exchange): string[] {
  return answers.length === 0 ? ['closed'] : answers.map(({ status }) => String(status));
}

async function complaintsAtTheEnd(place: NodePlace, warmMb: number, endMb: number): Promise<string[]> {
  const found: string[] = [];
  if (!(await place.isAlive())) found.push(`the process is gone:\n${place.logs().slice(-2_000)}`);
  const bad = /.*(unhandled|uncaught|"level":"error").*/i.exec(place.logs())?.[0];
  if (bad !== undefined) found.push(`its log says: ${bad.slice(0, 1_000)}`);
  if (place.hidden.some((secret) => place.logs().includes(secret))) found.push('its log holds a secret');
  if (endMb > warmMb + MAX_GROWTH_MB) found.push(`its memory grew from ${warmMb} to ${endMb} MB`);
  found.push(...(await inconsistencies(place.databaseUrls() as [string, string])));
  return found;
}

/** One case of a seed, with all that went over the wire. */
export async function fuzzOne(place: NodePlace, seed: number, index: number) {
  const asked: FuzzCase = await makeCase(seed, index, place);
  const got = await exchangeCase(asked, place.serve.port);
  return { asked, got, complaints: complaintsOf(asked, got, place.hidden) };
}
