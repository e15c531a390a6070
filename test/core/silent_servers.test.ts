// Servers that take a request and never answer. Node 20 forgets a limit that nothing but AbortSignal.any knows, at the next garbage
// collection (nodejs/node#57736): so these tests collect while they wait.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createSluiceClient } from '#client/index.ts';
import { createEdgeHook } from '#core/edge/hook.ts';
import { timedFetch } from '#core/edge/rpc.ts';
import { createHook } from '../../src/bridge/hook.ts';

const COLLECT_EVERY_MS = 100;
/** Hooks and calls give up after ten seconds. */
const LONGEST_MS = 25_000;

describe('a server that never answers', { concurrency: true }, () => {
  const server = createServer(() => undefined);
  let url = '';
  let collecting: NodeJS.Timeout;
  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    collecting = setInterval(collect, COLLECT_EVERY_MS);
  });
  after(() => {
    clearInterval(collecting);
    server.closeAllConnections();
    server.close();
  });

  const stop = new AbortController();
  const call = () => ({
    url,
    payload: { pool_id: 'p', resource_id: 'r', user_id: 'u' },
    id: 'commit_a',
    idempotencyKey: 'a',
    claimId: 'a',
    allowedHosts: ['127.0.0.1'],
    signal: stop.signal,
  });

  it('is given up by a hook of a worker', { timeout: LONGEST_MS }, () =>
    assert.rejects(createHook().post(call())),
  );

  it('is given up by a hook of an Edge Function', { timeout: LONGEST_MS }, () =>
    assert.rejects(createEdgeHook(undefined).post(call())),
  );

  it('is given up by a call of an Edge Function', { timeout: LONGEST_MS }, () =>
    assert.rejects(timedFetch(url, { signal: stop.signal })),
  );

  it('is given up by the client, whose caller has a signal too', { timeout: LONGEST_MS }, async () => {
    const sluice = createSluiceClient({ url, timeoutMs: 500, maxTries: 1 });
    await assert.rejects(sluice.pool('p', { signal: stop.signal }), { code: 'no_answer' });
  });
});
