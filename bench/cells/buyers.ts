// Buyers for the cells suite: many that claim one after the other, and some that come at a fixed pace.

import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { HealthyReport } from '../neighbours/healthy.ts';

export type Answered = HealthyReport & { claimIds: string[] };

const MS_PER_SEC = 1_000;
const PATIENCE_MS = 30_000;
const agent = new Agent({ keepAlive: true, maxSockets: 256 });

function claim(
  port: number,
  pool: string,
  id: string = randomUUID(),
): Promise<{ status: number; body: string }> {
  const body = JSON.stringify({ user_id: `user ${id}`, request_id: id });
  return new Promise((resolve, reject) => {
    const options = { agent, host: '127.0.0.1', port, method: 'POST', path: `/v1/pools/${pool}/claims` };
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const asked = request({ ...options, headers, signal: AbortSignal.timeout(PATIENCE_MS) }, (response) => {
      let text = '';
      response
        .setEncoding('utf8')
        .on('data', (chunk: string) => {
          text += chunk;
        })
        .on('end', () => resolve({ status: response.statusCode ?? 0, body: text }))
        .on('error', reject);
    });
    asked.on('error', reject).end(body);
  });
}

/**
 * `count` claims in all, in the pools in turn, as fast as `buyers` get their answers. Returns what each answer took, in
 * milliseconds. `ids` are those of the requests, where they are to be known.
 */
export async function claimInTurn(
  port: number,
  pools: readonly string[],
  count: number,
  buyers: number,
  ids: readonly string[] = [],
): Promise<number[]> {
  const tookMs: number[] = [];
  let next = 0;
  const buy = async (): Promise<void> => {
    while (next < count) {
      const turn = next++;
      const pool = pools[turn % pools.length] ?? '';
      const startMs = performance.now();
      const { status, body } = await claim(port, pool, ids[turn]);
      if (status !== 201 && status !== 200)
        throw new Error(`a claim in ${pool} was answered ${status}: ${body}`);
      tookMs.push(performance.now() - startMs);
    }
  };
  await Promise.all(Array.from({ length: buyers }, buy));
  return tookMs;
}

/** Each counts from the moment it was due, whatever became of the earlier ones. */
export async function claimAtPace(
  port: number,
  pool: string,
  count: number,
  perSec: number,
): Promise<Answered> {
  const report: Answered = { tookMs: [], failures: {}, claimIds: [] };
  const one = async (dueMs: number): Promise<void> => {
    try {
      const { status, body } = await claim(port, pool);
      if (status === 201) report.claimIds.push(JSON.parse(body).claim_id);
      else throw new Error(`status ${status}`);
    } catch (error) {
      const why = (error as Error).message;
      report.failures[why] = (report.failures[why] ?? 0) + 1;
    }
    report.tookMs.push(performance.now() - dueMs);
  };
  const startMs = performance.now();
  const all: Promise<void>[] = [];
  for (let at = 0; at < count; at++) {
    const dueMs = startMs + (at * MS_PER_SEC) / perSec;
    const earlyMs = dueMs - performance.now();
    if (earlyMs > 0) await pause(earlyMs);
    all.push(one(dueMs));
  }
  await Promise.all(all);
  return report;
}
