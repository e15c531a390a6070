import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { ClaimRoutes } from '#core/claim.ts';
import { type Route, Router } from '#core/router.ts';
import type { Page } from '../../src/metrics.ts';
import { HttpServer } from '../../src/server/http.ts';
import { metricsRoute } from '../../src/server/metrics_route.ts';
import { OperatorAuth } from '../../src/server/operator_auth.ts';
import { readScrapeSettings, type ScrapeSettings, scrapeGuard } from '../../src/server/scrape_access.ts';
import { memoryLog, memoryPorts } from '../core/support.ts';
import { ADMIN_KEY, ask, assertRefusal, bearer, claim, exchange } from './support.ts';

const READERS = 500;
const TOKEN = 'a-token-for-the-scraper';
/** All that waits for promises and not for time. */
const settle = () => new Promise((resolve) => setImmediate(resolve));
const PAGE = `# ${'x'.repeat(60_000)}\n`;

async function serve(t: TestContext, routes: Route[]): Promise<{ port: number; url: string }> {
  const log = memoryLog();
  const server = new HttpServer(new Router(routes, log), log);
  const port = await server.listen(0, '127.0.0.1');
  t.after(() => server.close());
  return { port, url: `http://127.0.0.1:${port}` };
}

function countedPage(): Page & { made: number } {
  const page = {
    made: 0,
    page: async () => {
      page.made++;
      return `${PAGE}made ${page.made}\n`;
    },
  };
  return page;
}

describe('the page of metrics', () => {
  it(`is sent once a second to a connection that asks ${READERS} times in one write, with claims beside it`, async (t) => {
    const page = countedPage();
    const rests: number[] = [];
    const rest = async (ms: number) => void rests.push(ms);
    const scrape = metricsRoute([page], scrapeGuard({ metricsOpen: true }), () => 0, rest);
    const { port, url } = await serve(t, [scrape, ...new ClaimRoutes(memoryPorts()).routes()]);
    const get = 'GET /metrics HTTP/1.1\r\nHost: x\r\n';
    const read = exchange(port, (socket) =>
      socket.write(`${`${get}\r\n`.repeat(READERS - 1)}${get}Connection: close\r\n\r\n`),
    );
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => claim(url, 'p', { user_id: `u${index}` })),
    );
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [201]);
    assert.equal((await read).split('HTTP/1.1 200').length - 1, READERS);
    assert.equal(page.made, READERS);
    assert.deepEqual(rests, Array(READERS - 1).fill(1_000), 'the first is made at once');
  });

  it('is one for all readers that ask within a second, also while it is being made', async () => {
    let nowMs = 0;
    let finishMaking: () => void = () => undefined;
    let wake: () => void = () => undefined;
    let begun = 0;
    const page = () => {
      const number = ++begun;
      return new Promise<string>((resolve) => {
        finishMaking = () => resolve(`made ${number}\n`);
      });
    };
    const rest = () =>
      new Promise<void>((resolve) => {
        wake = resolve;
      });
    const route = metricsRoute([{ page }], scrapeGuard({ metricsOpen: true }), () => nowMs, rest);
    const read = async () => String((await route.handle({} as never, '')).body);
    const readAll = () => Promise.all([read(), read(), read()]);
    const first = readAll();
    await settle();
    nowMs = 1_000;
    const second = readAll();
    await settle();
    finishMaking();
    assert.deepEqual(await first, Array(3).fill('made 1\n'));
    await settle();
    finishMaking();
    assert.deepEqual(await second, Array(3).fill('made 2\n'), 'who asked while it was made has the next one');
    nowMs = 1_999;
    const third = readAll();
    await settle();
    assert.equal(begun, 2, 'the second is not over');
    wake();
    await settle();
    finishMaking();
    assert.deepEqual(await third, Array(3).fill('made 3\n'));
  });

  const open = async (t: TestContext, settings: ScrapeSettings, isOperated = true) => {
    const auth = new OperatorAuth(ADMIN_KEY, Date.now);
    const guard = scrapeGuard(
      settings,
      isOperated ? (request) => auth.authorize(request, 'viewer') : undefined,
    );
    const { url } = await serve(t, [metricsRoute([countedPage()], guard), ...auth.routes()]);
    return {
      url,
      statusWith: async (token?: string) =>
        (await ask(`${url}/metrics`, token === undefined ? {} : { headers: bearer(token) })).status,
    };
  };

  it('needs the admin key where nothing else is set', async (t) => {
    const { url, statusWith } = await open(t, {});
    assertRefusal(await ask(`${url}/metrics`), 401, 'auth_required');
    assert.deepEqual([await statusWith(TOKEN), await statusWith(ADMIN_KEY)], [401, 200]);
  });

  it('can be read with a token of its own, which opens nothing else', async (t) => {
    const { url, statusWith } = await open(t, { metricsToken: TOKEN });
    const statuses = [await statusWith(), await statusWith(`${TOKEN}x`), await statusWith(TOKEN)];
    assert.deepEqual([...statuses, await statusWith(ADMIN_KEY)], [401, 401, 200, 200]);
    assertRefusal(await ask(`${url}/admin/session`, { headers: bearer(TOKEN) }), 401, 'auth_required');
  });

  it('of workers without an admin key needs the token', async (t) => {
    const { statusWith } = await open(t, { metricsToken: TOKEN }, false);
    assert.deepEqual(
      [await statusWith(), await statusWith(ADMIN_KEY), await statusWith(TOKEN)],
      [401, 401, 200],
    );
  });

  it('is open where that was said', async (t) => {
    const { statusWith } = await open(t, { metricsOpen: true });
    assert.equal(await statusWith(), 200);
  });

  it('has settings that say what is wrong with them', () => {
    assert.deepEqual(readScrapeSettings({}), { metricsOpen: false });
    assert.deepEqual(readScrapeSettings({ SLUICE_METRICS_OPEN: '1' }), { metricsOpen: true });
    assert.match(
      String(readScrapeSettings({ SLUICE_METRICS_OPEN: 'true' })),
      /SLUICE_METRICS_OPEN is "true"/,
    );
    assert.match(String(readScrapeSettings({ SLUICE_METRICS_TOKEN: 'short' })), /less than 16 characters/);
  });
});
