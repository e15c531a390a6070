// `sluice …` as a person would start it, and what both databases say about the claims.

import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import type pg from 'pg';
import { POOLER_ENV } from '../support/databases.ts';
import { PROJECT } from '../support/dev.ts';

export interface Sluice {
  child: ChildProcess;
  /** Resolves with the match when its output has one. */
  said(pattern: RegExp): Promise<RegExpExecArray>;
  ended: Promise<{ code: number | string; stdout: string; stderr: string }>;
}

export function sluice(args: string[], env: Record<string, string>, input?: string): Sluice {
  const child = spawn(process.execPath, [join(PROJECT, 'bin', 'sluice.js'), ...args], {
    cwd: '/',
    env: { PATH: process.env.PATH ?? '', SLUICE_LOG: 'info', ...POOLER_ENV, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin?.end(input);
  let stdout = '';
  let stderr = '';
  const waiting: { pattern: RegExp; resolve(match: RegExpExecArray): void }[] = [];
  const look = () => {
    for (const { pattern, resolve } of waiting) {
      const match = pattern.exec(stdout + stderr);
      if (match !== null) resolve(match);
    }
  };
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    look();
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
    look();
  });
  const ended = new Promise<{ code: number | string; stdout: string; stderr: string }>((resolve) => {
    child.once('close', (code, signal) => resolve({ code: code ?? signal ?? 'unknown', stdout, stderr }));
  });
  return {
    child,
    ended,
    said: (pattern) =>
      Promise.race([
        new Promise<RegExpExecArray>((resolve) => {
          waiting.push({ pattern, resolve });
          look();
        }),
        ended.then(({ code }) => {
          throw new Error(`ended with ${code} before it said ${pattern}:\n${stdout}${stderr}`);
        }),
      ]),
  };
}

/** Claims `count` slots for as many users, of which the first has the number `from`. */
export async function claimMany(db1: pg.Client, pool: string, count: number, from = 0): Promise<void> {
  // In batches of what claim_batch takes at once.
  await db1.query(
    `select count(*)
     from (
       select array_agg($1::text) as pools, array_agg('user ' || i) as users, array_agg(null::text) as requests,
         array_agg(true) as verified
       from generate_series($3::int, $3::int + $2::int - 1) i group by i / 1000
     ) b
     cross join lateral public.claim_batch(b.pools, b.users, b.requests, b.verified) c`,
    [pool, count, from],
  );
}

/** Where the claims of a pool stand, on both sides. */
export async function standing(db1: pg.Client, db2: pg.Client, pool: string) {
  const one = await db1.query(
    `select
       (select count(*)::int from public.claims c where c.pool_id = $1 and c.state = 'committed') as committed,
       (select count(*)::int from public.inventory_slots s where s.pool_id = $1 and s.status = 'CONSUMED') as consumed,
       (select count(*)::int from pgmq.q_intake_queue q where q.message ->> 'pool_id' = $1) as queued,
       (select count(*)::int from pgmq.q_intake_dlq q where q.message ->> 'pool_id' = $1) as dead`,
    [pool],
  );
  const two = await db2.query(
    'select count(*)::int as tickets from public.confirmed_tickets where pool_id = $1',
    [pool],
  );
  return { ...one.rows[0], ...two.rows[0] };
}
