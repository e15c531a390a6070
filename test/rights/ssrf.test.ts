// No hook leads inside: the same table of addresses where a URL is stored and where it is called, on Node and on Deno,
// with DNS that lies and DNS that changes its mind.

import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import dns from 'node:dns';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, mock, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { isRefusedAddress, refusalOfUrl } from '#core/bridge/address.ts';
import type { Payload } from '#core/bridge/ports.ts';
import { createHook } from '../../src/bridge/hook.ts';
import { hookAllowing } from '../bridge/hooks.ts';
import { deno } from '../edge/world.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { seededRandom } from '../support/load.ts';
import { openSession, type Session } from '../support/sessions.ts';
import { PRIVATE_BY_DNS, PUBLIC, REFUSED } from './ssrf_table.ts';

const NONE: ReadonlySet<string> = new Set();
const ALL_REFUSED = Object.values(REFUSED).flat();
const SEED = 20_260_224;
const RANDOM_ADDRESSES = 4_000;

const callTo = (url: string, allowedHosts: string[] = []) => ({
  url,
  payload: {} as Payload,
  id: 'commit_k',
  idempotencyKey: 'k',
  claimId: 'c',
  allowedHosts,
  signal: new AbortController().signal,
});

describe('a hook does not lead inside', () => {
  let databases: TestDatabases;
  let session: Session;
  let server: Server;
  let port: number;
  const seen: string[] = [];

  before(async () => {
    databases = await startDatabases({ db2: false });
    session = await openSession(databases.db1.url);
    server = createServer((request, response) => {
      seen.push(`${request.headers.host} ${request.url}`);
      const location = `http://127.0.0.1:${port}/landed`;
      if (request.url === '/redirect') response.writeHead(307, { location }).end();
      else response.writeHead(201).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    ({ port } = server.address() as AddressInfo);
  });
  after(async () => {
    server?.closeAllConnections();
    server?.close();
    await session?.close();
    await databases?.stop();
  });

  test('the table has no address twice, and more than sixty', () => {
    assert.equal(new Set(ALL_REFUSED).size, ALL_REFUSED.length);
    assert(ALL_REFUSED.length > 60, String(ALL_REFUSED.length));
  });

  for (const [kind, urls] of Object.entries(REFUSED)) {
    test(`${urls.length} URLs are neither stored nor called: ${kind}`, async () => {
      for (const url of urls) {
        for (const column of ['commit_webhook_url', 'validation_webhook_url']) {
          const store = `insert into public.engine_config (pool_id, ${column}) values ('inside', $1)`;
          await assert.rejects(session.rows(store, [url]), { code: 'SL001' }, `stored: ${url}`);
        }
        assert.notEqual(refusalOfUrl(url, NONE), undefined, `called: ${url}`);
        await assert.rejects(createHook().post(callTo(url)), { name: 'Unreachable' }, url);
      }
      assert.equal(await session.value('select count(*)::int from public.engine_config'), 0);
    });
  }

  test(`${PUBLIC.length} public URLs are stored, and would be called`, async () => {
    for (const [at, url] of PUBLIC.entries()) {
      assert.equal(refusalOfUrl(url, NONE), undefined, url);
      const store = 'insert into public.engine_config (pool_id, commit_webhook_url) values ($1, $2)';
      await session.rows(store, [`public_${at}`, url]);
    }
    await session.rows('delete from public.engine_config');
  });

  test(`the database and the core judge ${RANDOM_ADDRESSES} random addresses and the ends of every block alike`, async () => {
    const addresses = [...blockEnds(), ...randomAddresses()];
    const refused = await session.rows<{ address: string; refused: boolean }>(
      'select a as address, intake.is_special_address(a::inet) as refused from unnest($1::text[]) a',
      [addresses],
    );
    assert.equal(refused.length, addresses.length);
    const differing = refused.filter((row) => isRefusedAddress(row.address) !== row.refused);
    assert.deepEqual(differing, []);
    const counts = [true, false].map((wanted) => refused.filter((row) => row.refused === wanted).length);
    assert(Math.min(...counts) > 100, `both verdicts occur: ${counts}`);
  });

  test('on Node a public name with a private address is not called, whichever of its addresses is private', async () => {
    await withDns(
      (name) => PRIVATE_BY_DNS[name] ?? [],
      async () => {
        for (const name of Object.keys(PRIVATE_BY_DNS)) {
          assert.equal(refusalOfUrl(`http://${name}/`, NONE), undefined, 'nothing but DNS can tell');
          await assert.rejects(
            createHook().post(callTo(`http://${name}:${port}/`)),
            /private or special/,
            name,
          );
        }
      },
    );
    assert.deepEqual(seen, []);
  });

  test('on Node a name that is public when asked first and private when asked again is asked once', async () => {
    let asked = 0;
    const tried: string[] = [];
    const stop = new AbortController();
    // The test calls no host on the internet: it is enough to see where the connection goes.
    const watch = (message: unknown) => {
      const { socket } = message as { socket: Socket };
      socket.once('connectionAttempt', (address: string) => {
        tried.push(address);
        setImmediate(() => stop.abort());
      });
    };
    subscribe('net.client.socket', watch);
    try {
      await withDns(
        () => [asked++ === 0 ? '93.184.215.14' : '127.0.0.1'],
        async () => {
          const call = { ...callTo(`http://rebind.example.com:${port}/`), signal: stop.signal };
          await assert.rejects(createHook().post(call), { name: 'Unreachable' });
        },
      );
    } finally {
      unsubscribe('net.client.socket', watch);
    }
    assert.deepEqual([asked, tried, seen], [1, ['93.184.215.14'], []]);
  });

  test('on Node a redirect is an answer, and an allowed host is called', async () => {
    const own = `127.0.0.1:${port}`;
    assert.equal(await hookAllowing([own]).post(callTo(`http://${own}/redirect`)), 307);
    assert.equal(await createHook().post(callTo(`http://${own}/allowed`, ['127.0.0.1'])), 201);
    assert.deepEqual(seen, [`${own} /redirect`, `${own} /allowed`]);
    await withDns(
      () => ['127.0.0.1'],
      async () => {
        const named = `http://hooks.example.com:${port}/named`;
        await assert.rejects(createHook().post(callTo(named)), /private or special/);
        assert.equal(await hookAllowing(['hooks.example.com']).post(callTo(named)), 201);
      },
    );
    assert.equal(seen.at(-1), `hooks.example.com:${port} /named`);
  });

  test('on Node a host that is allowed no longer is not called by a connection from before', async () => {
    await withDns(
      () => ['127.0.0.1'],
      async () => {
        const url = `http://once.example.com:${port}/once`;
        assert.equal(await createHook().post(callTo(url, ['once.example.com'])), 201);
        await assert.rejects(createHook().post(callTo(url)), /private or special/);
      },
    );
    assert.deepEqual(
      seen.filter((line) => line.endsWith('/once')),
      [`once.example.com:${port} /once`],
    );
    seen.length = 0;
  });

  test('a host that is allowed by name is stored, and no other', async () => {
    const store = `insert into public.engine_config (pool_id, commit_webhook_url) values ('allowed', $1)`;
    await session.rows(`select public.allow_hook_host('127.0.0.1:9000', 'olga')`);
    for (const url of [
      'http://127.0.0.1:9001/',
      'http://127.0.0.1/',
      'http://127.1:9000/',
      'http://u@127.0.0.1:9000/',
    ])
      await assert.rejects(session.rows(store, [url]), { code: 'SL001' }, url);
    await session.rows(store, ['http://127.0.0.1:9000/hook']);
  });

  test('on Deno the same table is refused, before and after DNS, and what was judged is what is called', async () => {
    const cache = mkdtempSync(join(tmpdir(), 'sluice-ssrf-'));
    try {
      const script = fileURLToPath(new URL('./ssrf_deno.ts', import.meta.url));
      const { code, output } = await deno(
        'run',
        ['--cached-only', '--allow-net=127.0.0.1', script],
        {},
        cache,
      );
      assert.equal(code, 0, output);
      const told = JSON.parse(output.trim().split('\n').at(-1) ?? '');
      const everything = (of: readonly string[]) =>
        Object.fromEntries(of.map((each) => [each, 'Unreachable']));
      assert.deepEqual(told.refused, everything(ALL_REFUSED));
      assert.deepEqual(told.byDns, everything(Object.keys(PRIVATE_BY_DNS)));
      assert.deepEqual(told.before, { seen: [], held: [] }, 'nothing was called');
      assert.deepEqual([told.rebound, told.asked], [201, 1]);
      assert.equal(told.reboundTo, '93.184.215.14:8080', 'the address that was judged');
      assert.equal(told.reboundSeen, 'rebind.example.com:8080 /x', 'in the name of its host');
      assert.match(
        told.unheld,
        /net access to "rebind\.example\.com:8080"/,
        'that is what holding it is for',
      );
      assert.deepEqual([told.redirect, told.allowed], [307, 201]);
      assert.deepEqual(
        told.seen.filter((line: string) => line.includes('/landed')),
        [],
      );
    } finally {
      rmSync(cache, { recursive: true });
    }
  });
});

/** Answers every DNS lookup with `answer` while `work` runs. */
async function withDns(
  answer: (name: string) => readonly string[],
  work: () => Promise<void>,
): Promise<void> {
  type Found = (error: Error | null, found: dns.LookupAddress[]) => void;
  const lookup = mock.method(dns, 'lookup', (name: string, _options: dns.LookupAllOptions, found: Found) => {
    const addresses = answer(name).map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    // Later, as the real one does.
    setImmediate(() => found(null, addresses));
  });
  syncBuiltinESMExports();
  try {
    await work();
  } finally {
    lookup.mock.restore();
    syncBuiltinESMExports();
  }
}

const ipv4 = (bits: number): string => [24, 16, 8, 0].map((shift) => (bits >>> shift) & 255).join('.');

/** First, last, and the neighbours of both, of every block with a rule of its own. */
function blockEnds(): string[] {
  const blocks = `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24
    192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4`;
  const four = blocks.split(/\s+/).flatMap((block) => {
    const [address = '', prefix = '32'] = block.split('/');
    const first = address.split('.').reduce((bits, part) => bits * 256 + Number(part), 0);
    const last = first + 2 ** (32 - Number(prefix)) - 1;
    return [first - 1, first, last, last + 1].filter((bits) => bits >= 0 && bits < 2 ** 32).map(ipv4);
  });
  const six = `:: ::1 ::ffff:0:0 ::ffff:ffff:ffff 64:ff9b:: 64:ff9b:1:: 100:: 1fff:ffff:: 2000:: 2001:: 2001:1ff:ffff:: 2001:200::
    2001:db7:ffff:: 2001:db8:: 2001:db8:ffff:: 2001:db9:: 2001:ffff:: 2002:: 2002:ffff:: 2003:: 3ffe:ffff:: 3fff:: 3fff:ffff::
    4000:: 5f00:: fbff:: fc00:: fdff:: fe00:: fe80:: febf:: fec0:: ff00:: ffff::`;
  return [...four, ...six.split(/\s+/)];
}

function randomAddresses(): string[] {
  const random = seededRandom(SEED);
  const group = () => random.below(65_536).toString(16);
  return Array.from({ length: RANDOM_ADDRESSES }, (_, at) => {
    if (at % 2 === 0) return ipv4(random.below(2 ** 32));
    // Half of them where the public ones are, or none would be.
    const head = at % 4 === 1 ? (0x2000 + random.below(0x2000)).toString(16) : group();
    return [head, ...Array.from({ length: 7 }, group)].join(':');
  });
}
