// Calls to hooks as an Edge Function makes them, where they fail: who was not reached, and what is told about it.

import { Webhook } from 'npm:standardwebhooks@1';
import { createSign } from '../_shared/bridge/hook_request.ts';
import { createEdgeHook, type ResolveDns } from '../_shared/edge/hook.ts';
import { equal } from './stack.ts';

/** No datagram can be sent there: the answer is an error of the system, at once. */
const NOWHERE = { ipAddr: '127.0.0.1', port: 0 };

async function failureOf(url: string, resolveDns?: ResolveDns): Promise<Error> {
  const { hostname } = new URL(url);
  const isLocal = hostname === '127.0.0.1';
  const hook = createEdgeHook(resolveDns);
  const call = {
    url,
    payload: {} as never,
    id: 'commit_k',
    idempotencyKey: 'k',
    claimId: 'c',
    allowedHosts: isLocal ? [hostname] : [],
  };
  return hook.post({ ...call, signal: new AbortController().signal }).then(
    (status) => new Error(`answered ${status}`),
    (error: Error) => error,
  );
}

/** Everything that a log would write of an error. */
const told = (error: unknown): string =>
  error instanceof Error ? `${error} ${error.stack} ${told(error.cause)}` : String(error);

Deno.test('a name that cannot be resolved is a target that has not seen the request', async () => {
  const failures: [string, ResolveDns][] = [
    ['Error', (name, type) => Deno.resolveDns(name, type, { nameServer: NOWHERE })],
    ['TimedOut', () => Promise.reject(new Deno.errors.TimedOut('request timed out'))],
  ];
  for (const [name, resolveDns] of failures) {
    const failure = await failureOf('https://hook.example.com/secret', resolveDns);
    equal([failure.name, (failure.cause as Error).name], ['Unreachable', name]);
  }
});

Deno.test('what is told of a call that failed holds the host, and nothing else of the address', async () => {
  const listener = Deno.listen({ port: 0, hostname: '127.0.0.1' });
  const { port } = listener.addr;
  const cutting = (async () => {
    for await (const connection of listener) connection.close();
  })();
  const cut = await failureOf(`http://127.0.0.1:${port}/a)secret?b=secret`);
  listener.close();
  await cutting;
  const refused = await failureOf(`http://127.0.0.1:${port}/a)secret?b=secret`);
  equal([cut.name, refused.name], ['Error', 'Unreachable']);
  for (const failure of [cut, refused]) {
    equal(failure.message.includes(`127.0.0.1:${port}`), true);
    equal(told(failure).includes('secret'), false);
  }
});

Deno.test('a call is signed: the library of Standard Webhooks verifies it, and no other body', async () => {
  const secret = `whsec_${btoa('a key of exactly thirty-two byte')}`;
  const old = `whsec_${btoa('the key that is to be replaced..')}`;
  let heard: { body: string; headers: Record<string, string> } | undefined;
  const server = Deno.serve(
    { port: 0, hostname: '127.0.0.1', onListen: () => undefined },
    async (request) => {
      heard = { body: await request.text(), headers: Object.fromEntries(request.headers) };
      return new Response(null, { status: 204 });
    },
  );
  const sign = createSign(`${old} ${secret}`, (one) => new Webhook(one));
  const hook = createEdgeHook(undefined, undefined, sign);
  const payload = { pool_id: 'p', resource_id: 'r', user_id: 'zoë' };
  const call = { payload, id: 'commit_k', idempotencyKey: 'k', claimId: 'c', allowedHosts: ['127.0.0.1'] };
  const { signal } = new AbortController();
  await hook.post({ ...call, url: `http://127.0.0.1:${server.addr.port}/`, signal });
  await server.shutdown();
  if (heard === undefined) throw new Error('nothing was posted');
  const { body, headers } = heard;
  equal([headers['webhook-id'], headers['x-idempotency-key']], ['commit_k', 'k']);
  for (const one of [old, secret]) equal(new Webhook(one).verify(body, headers), payload);
  let refusal = '';
  try {
    new Webhook(secret).verify(body.replace('zoë', 'zoe'), headers);
  } catch (error) {
    refusal = (error as Error).message;
  }
  equal(refusal, 'No matching signature found');
});
