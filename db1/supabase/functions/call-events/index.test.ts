// Against a running stack: deno test --allow-net --allow-env, with all of .sluice/env in the environment.

import { db2, equal, invoke, ok } from '../_conformance/stack.ts';
import { signCall } from '../_shared/calls/signature.ts';
import { webHmac } from '../_shared/webhook/hmac.ts';

const test = Deno.test;
const site = Deno.env.get('OPS_SITE_ID') ?? '';
const secret = Deno.env.get('OPS_SITE_SECRET') ?? '';

/** Of an event of its own each time. */
async function signed(change: Record<string, unknown> = {}) {
  const event = { kind: 'ring', occurred_at: '2026-02-24T10:00:00Z', payload: { id: crypto.randomUUID() } };
  const body = JSON.stringify({ ...event, ...change });
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const signature = await signCall(
    { site, timestamp, body: new TextEncoder().encode(body) },
    secret,
    webHmac,
  );
  const headers = { 'x-ops-site': site, 'x-ops-timestamp': timestamp, 'x-ops-signature': signature };
  return { method: 'POST', headers, body, id: event.payload.id };
}

const rowsOf = async (id: string) =>
  (await ok<unknown[]>(db2.from('calls').select('id').eq('payload->>id', id))).length;

test('a signed call event is recorded, and a noop when it comes again', async () => {
  const request = await signed();
  const first = await invoke('call-events', request);
  equal([first.status, first.body.status], [200, 'recorded']);
  const noop = { status: 200, body: { status: 'noop', reason: 'idempotent_conflict' } };
  equal(await invoke('call-events', request), noop);
  equal(await rowsOf(request.id), 1);
});

test('the same call event ten times at once is one row', async () => {
  const request = await signed();
  const answers = await Promise.all(Array.from({ length: 10 }, () => invoke('call-events', request)));
  equal(answers.filter(({ body }) => body.status === 'recorded').length, 1);
  equal(await rowsOf(request.id), 1);
});

test('another spelling of the signature is refused, and nothing is stored', async () => {
  const request = await signed();
  const { 'x-ops-signature': signature } = request.headers;
  for (const spelling of [
    signature.toUpperCase(),
    `${signature}${signature}`,
    signature.slice(1),
    `0${signature}`,
  ]) {
    const headers = { ...request.headers, 'x-ops-signature': spelling };
    const { status, body } = await invoke('call-events', { ...request, headers });
    equal([status, body.error.code], [401, 'bad_signature']);
  }
  equal(await rowsOf(request.id), 0);
});

test('a body that is signed and wrong is refused', async () => {
  equal((await invoke('call-events', await signed({ admin: true }))).status, 422);
  equal((await invoke('call-events', { method: 'GET' })).status, 405);
});
