// Signed hooks against the receiver of docs/hooks.md, which verifies them with the library of the specification.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { headersOf } from '#core/bridge/hook_request.ts';
import type { HookCall, Payload } from '#core/bridge/ports.ts';
import { standard } from '#core/webhook/providers/standard.ts';
import { readSign } from '../../src/bridge/sign.ts';
import { freePort } from '../../src/stack/ports.ts';
import { nodeHmac } from '../../src/webhook/hmac.ts';
import { runHere } from '../cli/support.ts';
import { blocksOf, readPage } from '../contract/docs.ts';
import { PROJECT } from '../support/dev.ts';
import { hookAllowing } from './hooks.ts';
import { neverAborted, payload } from './support.ts';

const secretOf = (fill: string) => `whsec_${Buffer.alloc(32, fill).toString('base64')}`;
const SECRET = secretOf('r');
const ALLOWED = ['127.0.0.1'];

const callTo = (port: number, change: Record<string, unknown> = {}): HookCall => ({
  url: `http://127.0.0.1:${port}/`,
  payload: payload(1, change) as Payload,
  id: 'validation_1',
  idempotencyKey: '1',
  claimId: '1',
  allowedHosts: [],
  signal: neverAborted,
});

describe('the receiver of docs/hooks.md', () => {
  let dir: string;
  let receiver: ChildProcess;
  let port: number;

  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'sluice-receiver-'));
    symlinkSync(join(PROJECT, 'node_modules'), join(dir, 'node_modules'));
    const [code = ''] = blocksOf(readPage('hooks.md'), 'js');
    writeFileSync(join(dir, 'receiver.mjs'), `${code}\nconsole.log('ready');`);
    port = await freePort();
    receiver = spawn(process.execPath, [join(dir, 'receiver.mjs')], {
      env: { PATH: process.env.PATH ?? '', SLUICE_HOOK_SECRET: SECRET, PORT: String(port) },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    assert.match(String(await once(receiver.stdout as NodeJS.ReadableStream, 'data')), /ready/);
    // It says so after it has asked to listen; the first connection waits in the kernel meanwhile.
  });
  after(async () => {
    receiver?.kill();
    rmSync(dir, { recursive: true });
  });

  const post = (secrets: string | undefined, change: Record<string, unknown> = {}) =>
    hookAllowing(ALLOWED, readSign(secrets)).post(callTo(port, change));

  it('takes what is signed with its secret, and decides', async () => {
    assert.equal(await post(SECRET), 200);
    assert.equal(await post(SECRET, { user_id: 'zoë 🎟' }), 200);
    assert.equal(await post(SECRET, { user_id: 'blocked' }), 409);
  });

  it('takes it also while the secret is being changed, whichever of the two it has', async () => {
    assert.equal(await post(`${SECRET} ${secretOf('n')}`), 200);
    assert.equal(await post(`${secretOf('n')} ${SECRET}`), 200);
  });

  it('answers 401 to what is unsigned or signed with another secret', async () => {
    assert.equal(await post(undefined), 401);
    assert.equal(await post(secretOf('x')), 401);
  });

  it('answers 401 to a body that was changed on the way, and to an old one', async () => {
    const body = JSON.stringify(payload(1));
    const send = async (sent: string, nowMs: number) => {
      const headers = headersOf(
        { id: 'commit_1', idempotencyKey: '1', claimId: '1' },
        body,
        readSign(SECRET),
        nowMs,
      );
      return (await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body: sent })).status;
    };
    assert.equal(await send(body, Date.now()), 200);
    assert.equal(await send(body.replace('user 1', 'user 2'), Date.now()), 401);
    assert.equal(await send(body, Date.now() - 3_600_000), 401);
  });
});

describe('what we sign', () => {
  it('is accepted by our own verifier of Standard Webhooks, and a changed body is not', async () => {
    let heard: { headers: Record<string, string>; body: Uint8Array } | undefined;
    const server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      heard = { headers: request.headers as Record<string, string>, body: Buffer.concat(chunks) };
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await hookAllowing(ALLOWED, readSign(`${secretOf('n')} ${SECRET}`)).post(
      callTo(port, { user_id: 'zoë' }),
    );
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    assert(heard !== undefined);
    const { headers, body } = heard;
    const verify = (bytes: Uint8Array) =>
      standard.verify({ method: 'POST', url: '', headers, body: bytes }, [SECRET], {
        port: nodeHmac,
        nowSec: Math.floor(Date.now() / 1_000),
      });
    assert.equal((await verify(body)).ok, true);
    const changed = Buffer.from(body);
    changed[changed.length - 2] = 'x'.charCodeAt(0);
    assert.equal((await verify(changed)).ok, false);
  });
});

describe('sluice work', () => {
  it('does not start with a secret that is not one, and does not repeat it', async () => {
    const { code, stdout, stderr } = await runHere(['work', '--once'], {
      DB1_URL: 'postgres://127.0.0.1:1/a',
      DB2_URL: 'postgres://127.0.0.1:1/b',
      SLUICE_HOOK_SECRET: `${SECRET} whsec_not-base64`,
    });
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /^error: SLUICE_HOOK_SECRET: secret 2 of 2 is not whsec_ .*\nhint: make one with: /);
    assert.doesNotMatch(stderr, /not-base64/);
  });
});
