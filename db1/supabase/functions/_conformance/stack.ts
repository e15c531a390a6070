// What the tests of the functions share: the running stack, by the addresses in the environment.

import { createClient } from 'jsr:@supabase/supabase-js@2';

export function need(name: string): string {
  const value = Deno.env.get(name);
  if (!value) throw new Error(`set ${name}; npm start writes it to .sluice/env`);
  return value;
}

const connect = (side: 'DB1' | 'DB2') =>
  createClient(need(`${side}_SUPABASE_URL`), need(`${side}_SUPABASE_SERVICE_ROLE_KEY`), {
    auth: { persistSession: false, autoRefreshToken: false },
  });
export const db1 = connect('DB1');
export const db2 = connect('DB2');

/** Our own few lines: a test of the functions needs no package but the one that they use. */
export function equal(actual: unknown, expected: unknown): void {
  if (isEqual(actual, expected)) return;
  throw new Error(`${JSON.stringify(actual)} is not ${JSON.stringify(expected)}`);
}

function isEqual(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return Object.is(a, b);
  const [left, right] = [Object.entries(a), new Map<string, unknown>(Object.entries(b))];
  const sameKind = Array.isArray(a) === Array.isArray(b) && left.length === right.size;
  return sameKind && left.every(([key, value]) => right.has(key) && isEqual(value, right.get(key)));
}

type Answer = { data: unknown; error: { message: string } | null };

/** The data, or a failed test: supabase-js does not throw. */
export async function ok<Data>(query: PromiseLike<Answer>): Promise<Data> {
  const { data, error } = await query;
  if (error !== null) throw new Error(error.message);
  return data as Data;
}

/** Calls a function with the service role key, or with the headers given instead; an empty authorization is not sent. */
export async function invoke(path: string, init: RequestInit = {}): Promise<{ status: number; body: Body }> {
  const headers = new Headers({
    authorization: `Bearer ${need('DB1_SUPABASE_SERVICE_ROLE_KEY')}`,
    'content-type': 'application/json',
    ...init.headers,
  });
  if (headers.get('authorization') === '') headers.delete('authorization');
  const answer = await fetch(`${need('DB1_SUPABASE_URL')}/functions/v1/${path}`, { ...init, headers });
  return { status: answer.status, body: await answer.json() };
}
// biome-ignore lint/suspicious/noExplicitAny: answers of several shapes, each asserted on
export type Body = any;

export const drain = () => invoke('bridge-worker', { method: 'POST' });

/** Nothing that others have left on the queue may be counted as ours. */
export async function drainUntilIdle(): Promise<void> {
  while ((await drain()).body.status !== 'idle');
}

/** A pool of its own with this many slots, named at random. */
export async function makePool(slots: number, config: Record<string, unknown> = {}): Promise<string> {
  const poolId = `edge_${crypto.randomUUID()}`;
  await ok(db1.from('engine_config').insert({ pool_id: poolId, ...config }));
  const rows = Array.from({ length: slots }, () => ({ pool_id: poolId, status: 'AVAILABLE' }));
  await ok(db1.from('inventory_slots').insert(rows));
  return poolId;
}

export const claim = (poolId: string, userId: string) =>
  ok<string>(db1.rpc('claim_resource_and_queue', { p_pool_id: poolId, p_user_id: userId }));

export async function statusOf(slotId: string): Promise<string | undefined> {
  const [slot] = await ok<{ status: string }[]>(
    db1.from('inventory_slots').select('status').eq('id', slotId),
  );
  return slot?.status;
}

export const ticketsOf = (poolId: string) =>
  ok<{ resource_id: string; user_id: string }[]>(
    db2.from('confirmed_tickets').select('resource_id,user_id').eq('pool_id', poolId),
  );

/** A claim whose message has no attempts left is in the dead letters after this; the slot and the letter's id. */
export async function makeDeadLetter(): Promise<{ poolId: string; slotId: string; msgId: number }> {
  const poolId = await makePool(1, { max_retries: 1 });
  const slotId = await claim(poolId, 'ann');
  await drainUntilIdle();
  const { body } = await invoke(`admin-dlq?pool_id=${poolId}`);
  equal(body.messages.length, 1);
  return { poolId, slotId, msgId: body.messages[0].msg_id };
}

/** The way out of the dead letters: attempts that are not used up. */
export const allowRetries = (poolId: string) =>
  ok(db1.from('engine_config').update({ max_retries: 10 }).eq('pool_id', poolId));
