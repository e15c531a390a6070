// Real sessions for races: each is a connection of its own, and "it waits now" is seen in the server, not guessed.

import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';

export type BatchAnswer = {
  ordinal: number;
  outcome: string;
  claim_id: string | null;
  resource_id: string | null;
};
export type BatchRequest = { pool: string; user: string; request?: string };

/** One question, asked alone or as a batch, so that a test can be run with both. */
export type Answer = { outcome: string; slot: string | null };

export type Session = {
  client: pg.Client;
  /** Of the backend that serves this session. */
  pid: number;
  rows<Row extends pg.QueryResultRow>(sql: string, args?: unknown[]): Promise<Row[]>;
  /** The first column of the first row. */
  value<Value>(sql: string, args?: unknown[]): Promise<Value>;
  /** The slot's id, or null for sold out. */
  claim(pool: string, user: string, request?: string): Promise<string | null>;
  batch(requests: BatchRequest[]): Promise<BatchAnswer[]>;
  close(): Promise<void>;
};

const PARALLEL_CONNECTS = 25;
const POLL_MS = 5;
const WAIT_DEADLINE_MS = 10_000;

export async function openSession(url: string): Promise<Session> {
  const client = new pg.Client({ connectionString: url });
  // A connection that breaks while idle reports here; the statement that follows then fails with the reason.
  client.on('error', () => undefined);
  await client.connect();
  const rows = async <Row extends pg.QueryResultRow>(sql: string, args: unknown[] = []) =>
    (await client.query<Row>(sql, args)).rows;
  const value = async <Value>(sql: string, args: unknown[] = []) => {
    const { rows: found } = await client.query<[Value]>({ text: sql, values: args, rowMode: 'array' });
    assert(found[0], `no row: ${sql}`);
    return found[0][0];
  };
  return {
    client,
    pid: await value<number>('select pg_backend_pid()'),
    rows,
    value,
    claim: (pool, user, request) =>
      value('select public.claim_resource_and_queue($1, $2, $3)', [pool, user, request ?? null]),
    batch: (requests) =>
      rows<BatchAnswer>('select * from public.claim_batch($1, $2, $3) order by ordinal', [
        requests.map(({ pool }) => pool),
        requests.map(({ user }) => user),
        requests.map(({ request }) => request ?? null),
      ]),
    close: () => client.end(),
  };
}

/** Not all at once: the server's queue of new connections is short. */
export async function openSessions(url: string, count: number): Promise<Session[]> {
  const sessions: Session[] = [];
  while (sessions.length < count) {
    const wave = Math.min(PARALLEL_CONNECTS, count - sessions.length);
    sessions.push(...(await Promise.all(Array.from({ length: wave }, () => openSession(url)))));
  }
  return sessions;
}

export async function closeAll(sessions: Session[]): Promise<void> {
  await Promise.all(sessions.map((session) => session.close()));
}

/** The same question through either function; the errors of the single claim become outcomes. */
export const ASKING = {
  async single(session: Session, pool: string, user: string, request?: string): Promise<Answer> {
    try {
      const slot = await session.claim(pool, user, request);
      return { outcome: slot === null ? 'sold_out' : 'claimed', slot };
    } catch (error) {
      const outcome = OUTCOME_OF_ERROR[(error as pg.DatabaseError).code ?? ''];
      if (outcome === undefined) throw error;
      return { outcome, slot: null };
    }
  },
  async batch(session: Session, pool: string, user: string, request?: string): Promise<Answer> {
    const [answer] = await session.batch([{ pool, user, ...(request && { request }) }]);
    assert(answer);
    const outcome = answer.outcome === 'same' ? 'claimed' : answer.outcome;
    return { outcome, slot: answer.resource_id };
  },
};

const OUTCOME_OF_ERROR: Record<string, string> = {
  SL003: 'closed',
  SL004: 'limit',
  SL011: 'busy',
  SL012: 'ended',
};

/** Asks again while the answer is busy: that is what a client does. */
export async function askUntilAnswered(ask: () => Promise<Answer>): Promise<Answer> {
  const deadline = Date.now() + WAIT_DEADLINE_MS;
  for (;;) {
    const answer = await ask();
    if (answer.outcome !== 'busy') return answer;
    assert(Date.now() < deadline, 'busy without end');
    await delay(POLL_MS);
  }
}

/** Returns once the server itself says that `waiter` waits for a lock that `holder` has. */
export async function waitsFor(observer: Session, waiter: Session, holder: Session): Promise<void> {
  const deadline = Date.now() + WAIT_DEADLINE_MS;
  while (
    !(await observer.value<boolean>('select $2 = any (pg_blocking_pids($1))', [waiter.pid, holder.pid]))
  ) {
    assert(Date.now() < deadline, `backend ${waiter.pid} never waited for ${holder.pid}`);
    await delay(POLL_MS);
  }
}

/** Runs `first` up to the point before its commit, starts `second`, and ends `first` once `second` waits for it. */
export async function interleave<First, Second>(
  observer: Session,
  first: { session: Session; run(): Promise<First>; end: 'commit' | 'rollback' },
  second: { session: Session; run(): Promise<Second> },
): Promise<{ first: First; second: Second }> {
  await first.session.client.query('begin');
  const firstResult = await first.run();
  const waiting = second.run();
  // If `second` fails before it waits, that must not become an unhandled rejection meanwhile.
  const settled = waiting.then(
    () => undefined,
    () => undefined,
  );
  await Promise.race([
    waitsFor(observer, second.session, first.session),
    settled.then(() => endedEarly(waiting)),
  ]);
  await first.session.client.query(first.end);
  return { first: firstResult, second: await waiting };
}

async function endedEarly(waiting: Promise<unknown>): Promise<never> {
  assert.fail(`the second session did not wait, it ended with ${JSON.stringify(await waiting)}`);
}
