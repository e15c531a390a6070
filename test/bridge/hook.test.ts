// Calls to hooks: only to public addresses, whatever the spelling, whatever DNS says, and never by a redirect.

import assert from 'node:assert/strict';
import dns from 'node:dns';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import type { AddressInfo } from 'node:net';
import { after, before, mock, test } from 'node:test';
import { isRefusedAddress, refusalOfUrl } from '#core/bridge/address.ts';
import type { HookCall, Payload } from '#core/bridge/ports.ts';
import { createHook } from '../../src/bridge/hook.ts';
import { hookAllowing } from './hooks.ts';
import { neverAborted, payload } from './support.ts';

const NONE: ReadonlySet<string> = new Set();
const REFUSED_ADDRESSES = `
  0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 100.100.100.200 127.0.0.1 127.255.255.255
  168.63.129.16 169.254.0.1 169.254.169.254 169.254.170.2 172.16.0.0 172.31.255.255 192.0.0.1 192.0.0.192 192.0.2.7
  192.88.99.1 192.168.0.0 192.168.255.255 198.18.0.0 198.19.255.255 198.51.100.7 203.0.113.7 224.0.0.1 239.255.255.255
  240.0.0.1 255.255.255.255
  :: ::1 0:0:0:0:0:0:0:1 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:10.1.2.3 ::FFFF:169.254.169.254
  ::ffff:8.8.8.8 ::ffff:0:127.0.0.1 64:ff9b::127.0.0.1 64:ff9b::8.8.8.8 64:ff9b:1::1 2002:7f00:1:: 2002:a00:1::1 2002:c0a8:101:: 2002:808:808::1
  2001::1 2001:0:4136:e378:: 2001:10::1 2001:20::1 2001:db8::1 3fff::1 100::1 5f00::1 fc00::1 fd00:ec2::254 fdff::
  fe80::1 fe80::1%eth0 febf::1 fec0::1 ff02::1 ff0e::1 4000::1 1fff::1`
  .trim()
  .split(/\s+/);
const PUBLIC_ADDRESSES = `
  1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 168.63.129.15 169.253.255.255
  169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0
  223.255.255.255 2606:4700:4700::1111 2a00:1450:4001:82a::200e 2001:4860:4860::8888 2001:200::1 3ffe::1`
  .trim()
  .split(/\s+/);
const NO_ADDRESSES = [
  '',
  'localhost',
  '1.2.3',
  '1.2.3.4.5',
  '256.1.1.1',
  '01.2.3.4',
  '0x7f.1.1.1',
  '1.2.3.4 ',
  ':',
  ':::',
  '1::2::3',
  '1:2:3:4:5:6:7',
  '1:2:3:4:5:6:7:8:9',
  'g::1',
  '12345::',
  '::1.2.3',
  '::ffff:300.1.1.1',
];

test(`${REFUSED_ADDRESSES.length} private and special addresses are refused`, () => {
  assert.deepEqual(
    REFUSED_ADDRESSES.filter((address) => !isRefusedAddress(address)),
    [],
  );
});

test(`${PUBLIC_ADDRESSES.length} public addresses are not`, () => {
  assert.deepEqual(PUBLIC_ADDRESSES.filter(isRefusedAddress), []);
});

test('text that is not an address is refused', () => {
  assert.deepEqual(
    NO_ADDRESSES.filter((text) => !isRefusedAddress(text)),
    [],
  );
});

const REFUSED_URLS: Record<string, string[]> = {
  'a private or special address': [
    'http://127.0.0.1/',
    'http://127.1/',
    'http://0/',
    'http://2130706433/',
    'http://0x7f000001/',
    'http://0177.0.0.1/',
    'http://0x7f.0.0.1/',
    'http://127.0.0.1./',
    'http://１２７.0.0.1/',
    'http://%31%32%37.0.0.1/',
    'http://127。0。0。1/',
    'http://2852039166/',
    'http://0xa9fea9fe/',
    'http://0251.0376.0251.0376/',
    'http://[::1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[0:0:0:0:0:ffff:7f00:1]/',
    'http://[64:ff9b::a9fe:a9fe]/',
    'http://10.0.0.1:8080/x',
    'http:\\\\127.0.0.1\\x',
  ],
  'a local name': [
    'http://localhost/',
    'http://LOCALHOST:3000',
    'http://localhost./',
    'http://a.localhost/',
    'http://metadata.google.internal/',
    'http://metadata.google.internal./',
    'http://printer.local',
    'http://db/',
    'http://loc\tal\nhost/',
  ],
  'has credentials in it': [
    'http://u@example.com/',
    'http://u:p@example.com/',
    'http://example.com@127.0.0.1/',
  ],
  'not http or https': [
    'ftp://example.com',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'data:,x',
    'gopher://example.com',
  ],
  'not a URL': [
    '',
    'example.com',
    '//example.com',
    'http://',
    'http://256.1.1.1/',
    'http://1.2.3.4.5/',
    'http://[::1',
    'http://a b/',
  ],
};
for (const [refusal, urls] of Object.entries(REFUSED_URLS)) {
  test(`${urls.length} URLs are refused: ${refusal}`, () => {
    assert.deepEqual(
      urls.map((url) => [url, refusalOfUrl(url, NONE)]),
      urls.map((url) => [url, refusal]),
    );
  });
}

test('public names and addresses are not refused', () => {
  for (const url of [
    'https://example.com',
    'http://8.8.8.8:81/',
    'https://[2606:4700::1]/',
    'https://internal.example.com/',
    'https://example.com./',
  ])
    assert.equal(refusalOfUrl(url, NONE), undefined, url);
});

test('the operator’s list allows a host with all its ports, or one port, and never credentials or another scheme', () => {
  const allowed = new Set(['localhost', '127.0.0.1:9000', '[::1]']);
  for (const url of [
    'http://localhost:1/',
    'http://127.0.0.1:9000/',
    'http://0x7f.1:9000/',
    'http://[::1]:5/',
  ])
    assert.equal(refusalOfUrl(url, allowed), undefined, url);
  for (const url of [
    'http://127.0.0.1:9001/',
    'http://127.0.0.1/',
    'http://u@localhost/',
    'ftp://localhost/',
    'http://x.localhost/',
  ])
    assert.notEqual(refusalOfUrl(url, allowed), undefined, url);
});

type Seen = {
  method: string | undefined;
  url: string | undefined;
  headers: IncomingHttpHeaders;
  body: string;
};
const seen: Seen[] = [];
let server: Server;
let port: number;
let redirectTo = '';
const one = payload(1) as Payload;

const callTo = (url: string, idempotencyKey = 'k', signal = neverAborted): HookCall => ({
  url,
  payload: one,
  id: `commit_${idempotencyKey}`,
  idempotencyKey,
  claimId: 'the claim',
  allowedHosts: [],
  signal,
});

before(async () => {
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      seen.push({
        method: request.method,
        url: request.url,
        headers: request.headers,
        body: Buffer.concat(chunks).toString(),
      });
      if (request.url === '/silent') return;
      if (request.url === '/cut') request.socket.destroy();
      else if (request.url === '/redirect') response.writeHead(307, { location: redirectTo }).end();
      else response.writeHead(Number(request.url?.slice(1)) || 200).end('some text');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ({ port } = server.address() as AddressInfo);
  redirectTo = `http://127.0.0.1:${port}/landed`;
});

after(() => {
  server.closeAllConnections();
  server.close();
});

/** Answers every DNS lookup from `answers` while `work` runs. */
async function withDns(answers: Record<string, string[]>, work: () => Promise<void>): Promise<void> {
  const lookup = mock.method(
    dns,
    'lookup',
    (
      name: string,
      options: dns.LookupAllOptions,
      callback: (error: Error | null, found: dns.LookupAddress[]) => void,
    ) => {
      assert.equal(options.all, true);
      const found = answers[name];
      if (found === undefined) callback(Object.assign(new Error(`no ${name}`), { code: 'ENOTFOUND' }), []);
      else
        callback(
          null,
          found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
        );
    },
  );
  syncBuiltinESMExports();
  try {
    await work();
  } finally {
    lookup.mock.restore();
    syncBuiltinESMExports();
  }
}

test('a call carries the payload as JSON and the key, and resolves with the status', async () => {
  const hook = hookAllowing([`127.0.0.1:${port}`]);
  for (const status of [200, 204, 404, 500, 503])
    assert.equal(await hook.post(callTo(`http://127.0.0.1:${port}/${status}`, 'the key')), status);
  const last = seen.at(-1);
  assert.equal(last?.method, 'POST');
  assert.deepEqual(JSON.parse(last?.body ?? ''), one);
  assert.equal(last?.headers['content-type'], 'application/json');
  assert.equal(last?.headers['x-idempotency-key'], 'the key');
  assert.equal(last?.headers['x-claim-id'], 'the claim');
});

test('a redirect is an answer and is not followed', async () => {
  const hook = hookAllowing([`127.0.0.1:${port}`]);
  assert.equal(await hook.post(callTo(`http://127.0.0.1:${port}/redirect`)), 307);
  assert.equal(
    seen.some((request) => request.url === '/landed'),
    false,
  );
});

test('a host that is not on the list is not called', async () => {
  const { length } = seen;
  const hook = hookAllowing(['127.0.0.1:1', 'elsewhere']);
  await assert.rejects(
    hook.post(callTo(`http://127.0.0.1:${port}/`)),
    /the hook's URL is a private or special address/,
  );
  await assert.rejects(hook.post(callTo(`http://localhost:${port}/`)), /local name/);
  assert.equal(seen.length, length);
});

test('a public name with a private address is not called, whichever of its addresses is private', async () => {
  const { length } = seen;
  const answers = {
    'loop.example': ['127.0.0.1'],
    'two.example': ['8.8.8.8', '127.0.0.1'],
    'six.example': ['::ffff:127.0.0.1'],
    'meta.example': ['169.254.169.254'],
  };
  await withDns(answers, async () => {
    for (const name of Object.keys(answers)) {
      const call = createHook().post(callTo(`http://${name}:${port}/`));
      await assert.rejects(call, new RegExp(`${name} is at a private or special address`));
    }
    await assert.rejects(createHook().post(callTo('http://none.example/')), /no none.example/);
  });
  assert.equal(seen.length, length);
});

test('a name is looked up once, where the connection is made: what was checked is what is used', async () => {
  const { length } = seen;
  let looks = 0;
  const changing = {
    get 'rebind.example'() {
      return looks++ === 0 ? ['127.0.0.1'] : ['8.8.8.8'];
    },
  };
  await withDns(changing, async () => {
    await assert.rejects(createHook().post(callTo(`http://rebind.example:${port}/`)), /private or special/);
  });
  assert.equal(looks, 1, 'the answer that was checked is the one that is used');
  assert.equal(seen.length, length);
});

test('an allowed name may be at any address', async () => {
  await withDns({ 'hooks.test.example': ['127.0.0.1'] }, async () => {
    const hook = hookAllowing(['hooks.test.example']);
    assert.equal(await hook.post(callTo(`http://hooks.test.example:${port}/201`)), 201);
  });
});

test('a host that the pool’s database allows may be called by a worker that knows no such host', async () => {
  const call = callTo(`http://127.0.0.1:${port}/201`);
  await assert.rejects(createHook().post(call), /private or special/);
  assert.equal(await createHook().post({ ...call, allowedHosts: [`127.0.0.1:${port}`] }), 201);
});

test('no answer is a rejection: a cut connection, a port without a listener, or a stop', async () => {
  const hook = hookAllowing(['127.0.0.1']);
  // Twice, because the second may go over a connection that is used again.
  for (const path of ['/cut', '/201', '/cut']) {
    const answer = hook.post(callTo(`http://127.0.0.1:${port}${path}`));
    if (path === '/cut') await assert.rejects(answer, { code: 'ECONNRESET' }, 'it has seen the request');
    else await answer;
  }
  for (const nowhere of ['http://127.0.0.1:1/', `https://127.0.0.1:${port}/`])
    await assert.rejects(hook.post(callTo(nowhere)), { name: 'Unreachable' }, nowhere);
  const stopping = new AbortController();
  const silent = hook.post(callTo(`http://127.0.0.1:${port}/silent`, 'k', stopping.signal));
  stopping.abort();
  await assert.rejects(silent, ({ cause }) => cause.name === 'AbortError', 'stopped before it was sent');
});
