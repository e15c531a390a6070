// An answer in parts: at the pace of its reader, and never half a file that looks whole.

import assert from 'node:assert/strict';
import { get, type IncomingMessage } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { type Route, Router } from '#core/router.ts';
import { HttpServer } from '../../src/server/http.ts';
import { memoryLog } from '../core/support.ts';

const PART = 'x'.repeat(64 * 1024);
const PARTS = 2_000;

describe('an answer in parts', () => {
  let http: HttpServer;
  let url: string;
  const log = memoryLog();
  let asked = 0;
  let isEnded = false;
  async function* endless(): AsyncGenerator<string> {
    try {
      for (asked = 0; asked < PARTS; asked++) yield PART;
    } finally {
      isEnded = true;
    }
  }
  async function* broken(): AsyncGenerator<string> {
    yield 'first';
    throw new Error('the database went away');
  }
  async function* whole(): AsyncGenerator<string> {
    yield 'a';
    yield 'b';
  }
  const route = (path: string, parts: () => AsyncIterable<string>): Route => ({
    method: 'GET',
    path,
    handle: () => ({ status: 200, headers: { 'content-type': 'text/plain' }, body: '', parts: parts() }),
  });
  before(async () => {
    const routes = [route('/endless', endless), route('/broken', broken), route('/whole', whole)];
    http = new HttpServer(new Router(routes, log), log);
    url = `http://127.0.0.1:${await http.listen(0, '127.0.0.1')}`;
  });
  after(() => http?.close());

  const open = (path: string, method = 'GET') =>
    new Promise<IncomingMessage>((resolve, reject) =>
      get(url + path, { agent: false, method }, resolve).on('error', reject),
    );
  async function read(response: IncomingMessage): Promise<string> {
    let text = '';
    for await (const part of response) text += part;
    return text;
  }

  it('comes whole', async () => {
    assert.equal(await read(await open('/whole')), 'ab');
  });

  it('has no body where only its head is asked for', async () => {
    const head = await open('/whole', 'HEAD');
    assert.deepEqual([head.statusCode, await read(head)], [200, '']);
  });

  it('that breaks off breaks the connection, and the log says why', async () => {
    await assert.rejects(async () => read(await open('/broken')), /aborted|hang up|ECONNRESET/);
    const [line] = log.lines.filter(({ message }) => message === 'an answer broke off');
    assert.match(String(line?.fields?.cause), /the database went away/);
  });

  it('waits for its reader, and ends when that one leaves', async () => {
    const response = await open('/endless');
    response.once('data', () => response.pause());
    // Until nothing more is asked for: what fits into the buffers in between is full.
    for (let last = -1; last !== asked || asked === 0; ) {
      last = asked;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    assert.ok(asked < PARTS / 2, `${asked} parts were asked for while the reader had paused`);
    response.destroy();
    while (!isEnded) await new Promise((resolve) => setImmediate(resolve));
  });
});
