// Requests that are refused before their body is read: they count, and the log tells of them, as it does of all others.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { HttpError } from '#core/errors.ts';
import { jsonResponse } from '#core/router.ts';
import { HttpServer } from '../../src/server/http.ts';
import { MeteredRouter } from '../../src/server/metered_router.ts';
import { memoryLog } from '../core/support.ts';
import { metricLines } from '../webhook/process_support.ts';
import { ask, assertRefusal } from './support.ts';

const MAX_BYTES = 200_000;
/** More than comes in one read: a body that is whole already is handled instead. */
const LONG_BYTES = 150_000;

describe('a request that is refused before its body is read', () => {
  const log = memoryLog();
  const metrics = metricLines();
  const unavailable = async (): Promise<never> => {
    throw new HttpError('database_unavailable');
  };
  const route = {
    method: 'POST',
    path: '/webhooks/:endpoint',
    maxBodyBytes: MAX_BYTES,
    checkTarget: unavailable,
    handle: () => jsonResponse(200, {}),
  };
  const server = new HttpServer(new MeteredRouter([route], log, metrics, () => undefined), log);
  let url = '';

  before(async () => {
    url = `http://127.0.0.1:${await server.listen(0)}`;
  });
  after(() => server.close());
  beforeEach(() => {
    metrics.lines.length = 0;
    log.lines.length = 0;
  });
  const post = (bytes: number, path = '/webhooks/x') =>
    ask(`${url}${path}`, { method: 'POST', body: 'x'.repeat(bytes) });
  const told = () => log.lines.filter(({ level }) => level !== 'debug');
  const counted = () => metrics.lines.filter((line) => line.includes('sluice_http_requests_total'));

  it('counts with its route and status, and an outage is told once', async () => {
    for (let time = 0; time < 2; time++) assertRefusal(await post(LONG_BYTES), 503, 'database_unavailable');
    const [first, second] = counted();
    assert.match(String(first), /webhooks.*5xx/);
    assert.equal(second, first);
    assert.deepEqual(
      told().map(({ level, message, fields }) => [level, message, fields?.path]),
      [['warn', 'request refused', '/webhooks/x']],
    );
  });

  it('counts where it announces too much', async () => {
    assertRefusal(await post(MAX_BYTES + 1), 413, 'too_large');
    assert.match(String(counted()), /webhooks.*4xx/);
    assert.deepEqual(told(), []);
  });

  it('counts where no route takes its path', async () => {
    assertRefusal(await post(LONG_BYTES, '/nowhere'), 404, 'not_found');
    assert.match(String(counted()), /none.*4xx/);
  });
});
