import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { loadPages, pageRoutes } from '../../src/console/assets.ts';
import { notFoundPage } from '../../src/console/not_found.ts';
import { createMetrics } from '../../src/metrics.ts';
import { HttpServer } from '../../src/server/http.ts';
import { MeteredRouter } from '../../src/server/metered_router.ts';
import { memoryLog } from '../core/support.ts';
import { ask, assertRefusal } from '../server/support.ts';

const BROWSER = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

describe('a path that leads nowhere', () => {
  const log = memoryLog();
  const pages = pageRoutes(loadPages(), log);
  const server = new HttpServer(
    new MeteredRouter(pages, log, createMetrics(), notFoundPage(pages, log)),
    log,
  );
  let url = '';
  before(async () => {
    url = `http://127.0.0.1:${await server.listen(0)}`;
  });
  after(() => server.close());

  it('is a page for a browser and JSON for a program', async () => {
    for (const path of ['/nowhere', '/drop/a/b', '/drop//', '//evil.example/']) {
      const page = await ask(url + path, { headers: BROWSER });
      assert.deepEqual(
        [path, page.status, page.headers['content-type']],
        [path, 404, 'text/html; charset=utf-8'],
      );
      assert.match(String(page.headers['content-security-policy']), /default-src 'self'/);
      assert.equal(page.headers.location, undefined);
      assertRefusal(await ask(url + path), 404, 'not_found');
      assertRefusal(await ask(url + path, { method: 'POST', headers: BROWSER }), 404, 'not_found');
    }
  });

  it('is the page before its last slash, where there is one', async () => {
    for (const path of ['/pools', '/drop/x']) {
      const { status, headers } = await ask(`${url}${path}/`, { headers: BROWSER });
      assert.deepEqual([status, headers.location], [308, path]);
      assert.equal((await ask(url + path, { headers: BROWSER })).status, 200);
    }
  });

  it('is not the answer for the icon that every browser asks for', async () => {
    const { status, headers } = await ask(`${url}/favicon.ico`);
    assert.deepEqual([status, headers['content-type']], [200, 'image/svg+xml']);
  });
});
