// A process of its own: buyers at a slow, fixed pace, each followed until the ledger has its ticket. Each counts from the moment
// it was due. It knows a ticket by its slot, because that is all the other designs answer.

import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { POOL } from './way.ts';

export type FollowOrder = { port: number; db2Url: string; perSec: number };
/** `lateMs` are the ages of those without a ticket at the report; `refused` those who found nothing to buy. */
export type Followed = {
  claimMs: number[];
  ticketMs: number[];
  refused: number;
  failed: string[];
  lateMs: number[];
};

const MS_PER_SEC = 1_000;
/** One indexed look at DB2 for all that wait: ticket times are that coarse. */
const LOOK_MS = 5;
const LAST_LOOK_MS = 500;
const PATIENCE_MS = 60_000;
const CREATED = 201;
const CONFLICT = 409;
const agent = new Agent({ keepAlive: true });
const LOOK =
  'select t.resource_id::text as id from public.confirmed_tickets t where t.resource_id = any ($1::uuid[])';

function claim(port: number): Promise<{ status: number; body: string }> {
  const id = randomUUID();
  return new Promise((resolve, reject) => {
    const options = { agent, host: '127.0.0.1', port, method: 'POST', path: `/v1/pools/${POOL}/claims` };
    const headers = { 'content-type': 'application/json' };
    const asked = request({ ...options, headers, signal: AbortSignal.timeout(PATIENCE_MS) }, (response) => {
      let body = '';
      response
        .setEncoding('utf8')
        .on('data', (text: string) => {
          body += text;
        })
        .on('end', () => resolve({ status: response.statusCode ?? 0, body }))
        .on('error', reject);
    });
    asked.on('error', reject).end(JSON.stringify({ user_id: `user ${id}`, request_id: id }));
  });
}

class Follower {
  readonly #waiting = new Map<string, number>();
  readonly #report: Followed = { claimMs: [], ticketMs: [], refused: 0, failed: [], lateMs: [] };
  #isBuying = true;
  #isLooking = true;

  async buy({ port, perSec }: FollowOrder): Promise<void> {
    const startMs = performance.now();
    const all: Promise<void>[] = [];
    for (let at = 0; this.#isBuying; at++) {
      const dueMs = startMs + (at * MS_PER_SEC) / perSec;
      const earlyMs = dueMs - performance.now();
      if (earlyMs > 0) await pause(earlyMs);
      all.push(this.#one(port, dueMs));
    }
    await Promise.all(all);
  }

  async #one(port: number, dueMs: number): Promise<void> {
    try {
      const { status, body } = await claim(port);
      if (status === CONFLICT) this.#report.refused++;
      else if (status !== CREATED) throw new Error(`status ${status}`);
      else {
        this.#report.claimMs.push(performance.now() - dueMs);
        this.#waiting.set(JSON.parse(body).resource_id, dueMs);
      }
    } catch (error) {
      this.#report.failed.push((error as Error).message);
    }
  }

  async look(db2Url: string): Promise<void> {
    const client = new pg.Client({ connectionString: db2Url, application_name: 'sluice bench follower' });
    await client.connect();
    while (this.#isLooking) {
      await pause(LOOK_MS);
      if (this.#waiting.size === 0) continue;
      const values = [[...this.#waiting.keys()]];
      const { rows } = await client.query<{ id: string }>({ name: 'look', text: LOOK, values });
      for (const { id } of rows) {
        this.#report.ticketMs.push(performance.now() - (this.#waiting.get(id) ?? 0));
        this.#waiting.delete(id);
      }
    }
    await client.end();
  }

  stopBuying(): void {
    this.#isBuying = false;
  }

  report(): Followed {
    this.#isLooking = false;
    const nowMs = performance.now();
    return { ...this.#report, lateMs: [...this.#waiting.values()].map((dueMs) => nowMs - dueMs) };
  }
}

let follower = new Follower();
let buying: Promise<unknown> = Promise.resolve();
let looking: Promise<unknown> = Promise.resolve();

process.on('message', async (message: FollowOrder | 'stop' | 'report' | 'end') => {
  if (message === 'end') {
    agent.destroy();
    process.disconnect?.();
  } else if (message === 'stop') {
    follower.stopBuying();
    await buying;
    process.send?.(true);
  } else if (message === 'report') {
    // Where all is drained by now, one look finds what there is.
    await pause(LAST_LOOK_MS);
    const report = follower.report();
    await looking;
    process.send?.(report);
  } else {
    follower = new Follower();
    buying = follower.buy(message);
    looking = follower.look(message.db2Url);
    process.send?.(true);
  }
});
