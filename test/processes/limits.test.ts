// What one address may do, and what a server takes at once, over all processes of a command. The control beside each is two commands
// with a process each: they share nothing, and let twice as much through.

import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { openStream, type StreamReader } from '../console/support.ts';
import { ask, bearer, claim, openClient, putOnSale } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { envOf, killLeft, membersOf, metric, type Served, serve, stop, until } from './support.ts';

const BURST = 20;
const ASKED = 60;
/** Tokens that come back while all that are asked for are answered: one a second. */
const PER_SEC = 1;

describe('limits of a server with two processes', () => {
  let databases: TestDatabases;
  let db1: pg.Client;
  before(async () => {
    databases = await startDatabases();
    db1 = await openClient(databases.db1.url);
    await putOnSale(db1, 'show', 10_000);
  });
  after(async () => {
    killLeft();
    await db1?.end();
    await databases?.stop();
  });

  /** What becomes of it with one command of two processes, and with two commands. */
  const compare = async (
    settings: Record<string, string>,
    passed: (urls: readonly [string, string]) => Promise<number>,
  ): Promise<[together: number, apart: number]> => {
    const env = { ...envOf(databases), SLUICE_LOG: 'warn', SLUICE_LIMIT_LOOPBACK: '1', ...settings };
    const both = await serve(env, '--processes', '2');
    const together = await passed([both.url, both.url]);
    await stop(both);
    const [one, other] = [await serve(env), await serve(env)];
    const apart = await passed([one.url, other.url]);
    await stop(one);
    await stop(other);
    return [together, apart];
  };

  /** Of so many requests at once, half to each address: how many were not answered 429; and what came back meanwhile at most. */
  const notLimited = async (
    urls: readonly [string, string],
    send: (url: string, number: number) => Promise<{ status: number }>,
  ): Promise<{ passed: number; refilled: number }> => {
    const startedMs = performance.now();
    const answers = await Promise.all(
      Array.from({ length: ASKED }, (_, number) => send(urls[number % 2] ?? '', number)),
    );
    const refilled = Math.ceil(((performance.now() - startedMs) / 1_000) * PER_SEC);
    return { passed: answers.filter(({ status }) => status !== 429).length, refilled };
  };

  it('let an address claim as often as one process would', async () => {
    let refilled = 0;
    const [together, apart] = await compare({ SLUICE_LIMIT_CLAIMS: `${BURST},${PER_SEC}` }, async (urls) => {
      const seen = await notLimited(urls, (url, number) => claim(url, 'show', { user_id: `u${number}` }));
      refilled = Math.max(refilled, seen.refilled);
      return seen.passed;
    });
    assert.ok(together >= BURST && together <= BURST + refilled, `${together} of ${ASKED}`);
    assert.ok(apart >= 2 * BURST, `${apart} passed two servers`);
  });

  it('let an address use up its burst on one connection', async () => {
    const env = {
      ...envOf(databases),
      SLUICE_LIMIT_LOOPBACK: '1',
      SLUICE_LIMIT_CLAIMS: `${BURST},${PER_SEC}`,
    };
    const served = await serve(env, '--processes', '2');
    const { Agent } = await import('node:http');
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const statuses: number[] = [];
    for (let number = 0; number < BURST + 10; number++)
      statuses.push((await claim(served.url, 'show', { user_id: 'one' }, {}, agent)).status);
    agent.destroy();
    // A share of the limit would refuse it half way.
    assert.ok(!statuses.slice(0, BURST).includes(429), statuses.join());
    assert.ok(statuses.includes(429), statuses.join());
    assert.ok(((await metric(served.url, 'sluice_limited_total{limit="claims"}')) ?? 0) > 0);
    await stop(served);
  });

  it('let an address guess keys, and send unsigned deliveries, as often as one process would', async () => {
    for (const [variable, send] of [
      ['SLUICE_LIMIT_WRONG_KEYS', (url: string) => ask(`${url}/admin/session`, { headers: bearer('guess') })],
      [
        'SLUICE_LIMIT_DELIVERIES',
        (url: string) =>
          ask(`${url}/call-events`, {
            method: 'POST',
            headers: { 'x-ops-site': 'stranger' },
            body: { kind: 'x' },
          }),
      ],
    ] as const) {
      let refilled = 0;
      const [together, apart] = await compare({ [variable]: `${BURST},${PER_SEC}` }, async (urls) => {
        const seen = await notLimited(urls, send);
        refilled = Math.max(refilled, seen.refilled);
        return seen.passed;
      });
      assert.ok(together >= BURST && together <= BURST + refilled, `${variable}: ${together} of ${ASKED}`);
      assert.ok(apart >= 2 * BURST, `${variable}: ${apart} passed two servers`);
    }
  });

  const openAll = (urls: readonly [string, string], count: number): Promise<StreamReader[]> =>
    Promise.all(
      Array.from({ length: count }, (_, number) => openStream(`${urls[number % 2]}/v1/pools/show/live`)),
    );
  const isOpen = ({ response }: StreamReader): boolean => response.statusCode === 200;

  it('let an address have as many streams open as one process would', async () => {
    const [together, apart] = await compare({ SLUICE_LIMIT_STREAMS: '3' }, async (urls) => {
      const streams = await openAll(urls, 8);
      const open = streams.filter(isOpen);
      assert.ok(streams.every((stream) => isOpen(stream) || stream.response.statusCode === 429));
      for (const stream of streams) stream.leave();
      return open.length;
    });
    assert.deepEqual([together, apart], [3, 6]);
  });

  it('give the place of a stream back when its reader leaves, and when its process is killed', async () => {
    const env = { ...envOf(databases), SLUICE_LIMIT_LOOPBACK: '1', SLUICE_LIMIT_STREAMS: '2' };
    const served: Served = await serve(env, '--processes', '2');
    const urls = [served.url, served.url] as const;
    const comesIn = async (): Promise<boolean> => (await openAll(urls, 1)).every(isOpen);
    const [first, second] = await openAll(urls, 2);
    assert.ok(first && second && isOpen(first) && isOpen(second));
    assert.equal(await comesIn(), false);
    first.leave();
    await until('there is room for another', comesIn);
    assert.equal(await comesIn(), false);
    for (const pid of membersOf(served)) process.kill(pid, 'SIGKILL');
    await until('both streams of the dead are forgotten', async () => {
      const streams = await openAll(urls, 2).catch(() => []);
      for (const stream of streams) stream.leave();
      return streams.length === 2 && streams.every(isOpen);
    });
    await stop(served);
  });

  it('take no more requests at once than one process would', async () => {
    const most = 4;
    /** A request whose body does not come. */
    const begin = (url: string): Promise<{ socket: Socket; isRefused: boolean }> =>
      new Promise((resolve, reject) => {
        const socket = connect(Number(new URL(url).port), '127.0.0.1', () => {
          const head = 'POST /v1/pools/show/claims HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';
          socket.write(`${head}Content-Length: 20\r\n\r\n{`);
          setTimeout(() => resolve({ socket, isRefused: false }), 1_000);
        });
        socket.on('error', reject);
        socket.once('data', (bytes) =>
          resolve({ socket, isRefused: bytes.toString().startsWith('HTTP/1.1 429') }),
        );
      });
    const [together, apart] = await compare({ SLUICE_MAX_REQUESTS: String(most) }, async (urls) => {
      const begun = await Promise.all(
        Array.from({ length: 12 }, (_, number) => begin(urls[number % 2] ?? '')),
      );
      for (const { socket } of begun) socket.destroy();
      return begun.filter(({ isRefused }) => !isRefused).length;
    });
    assert.deepEqual([together, apart], [most, 2 * most]);
  });
});
