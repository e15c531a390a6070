import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { BrowserContext, Page } from 'playwright-core';
import { claim, putOnSale } from '../../server/support.ts';
import { ensureChromium } from '../chromium.ts';
import { type House, openHouse } from './support.ts';

const chromium = await ensureChromium();
const skip = 'missing' in chromium && chromium.missing;
const TABS = 8;
/** What browsers allow to one server over HTTP/1.1. */
const CONNECTIONS = 6;
const PATIENCE_MS = 60_000;
const STUCK_MS = 2_000;

/** Which streams a context has open, and whose they are. */
function watchStreams(context: BrowserContext): Map<object, Page> {
  const open = new Map<object, Page>();
  context.on('request', (request) => {
    if (request.resourceType() !== 'eventsource') return;
    const page = request.frame().page();
    open.set(request, page);
    // The requests of a tab that is closed are not reported as over.
    page.once('close', () => open.delete(request));
  });
  context.on('requestfinished', (request) => open.delete(request));
  context.on('requestfailed', (request) => open.delete(request));
  return open;
}

async function setVisibility(page: Page, state: 'hidden' | 'visible'): Promise<void> {
  await page.evaluate(
    `Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true });
     document.dispatchEvent(new Event('visibilitychange'));`,
  );
}

async function until(isTrue: () => boolean, what: string): Promise<void> {
  for (const patience = Date.now() + PATIENCE_MS; !isTrue(); ) {
    assert(Date.now() < patience, what);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

describe(`${TABS} tabs of one browser`, { skip }, () => {
  let house: House;
  before(async () => {
    house = await openHouse('path' in chromium ? chromium.path : '');
  });
  after(() => house?.close());

  it('would use up its connections with a stream each, which is how we know that they could', async () => {
    await putOnSale(house.db1, 'crowded', 5);
    const context = await house.visit();
    const page = await context.newPage();
    await page.goto(`${house.url}/healthz`);
    await page.evaluate(
      `window.streams = Array.from({ length: ${CONNECTIONS} }, () => new EventSource('/v1/pools/crowded/live'))`,
    );
    await page.waitForFunction('streams.every((stream) => stream.readyState === 1)');
    const answer = `Promise.race([fetch('/healthz').then(() => 'answered'), new Promise((end) => setTimeout(end, ${STUCK_MS}, 'stuck'))])`;
    assert.equal(await page.evaluate(answer), 'stuck');
    await page.evaluate('streams[0].close()');
    assert.equal(await page.evaluate(`fetch('/healthz').then(() => 'answered')`), 'answered');
    await context.close();
  });

  it('can all buy: they share one stream, also when the tab that held it is closed', async () => {
    await putOnSale(house.db1, 'shared', 100);
    const context = await house.visit();
    context.setDefaultTimeout(PATIENCE_MS);
    const streams = watchStreams(context);
    const pages: Page[] = [];
    for (let tab = 0; tab < TABS; tab++) {
      const page = await context.newPage();
      await page.goto(`${house.url}/drop/shared`);
      await page.waitForSelector('main[data-scene="open"]');
      pages.push(page);
    }
    await until(() => streams.size === 1, 'one stream for all');
    await pages.at(-1)?.click('button.big');
    for (const page of pages) await page.waitForSelector('main[data-scene="ticket"]');

    const [holder] = streams.values();
    await holder?.close();
    const others = pages.filter((page) => page !== holder);
    assert.equal(others.length, TABS - 1);
    await until(
      () => streams.size === 1 && ![...streams.values()].includes(holder as Page),
      'another holds it',
    );
    await context.close();
  });

  it('hear of a change from the tab that holds the stream, and a hidden one lets go of it', async () => {
    await putOnSale(house.db1, 'told', 100);
    const context = await house.visit();
    context.setDefaultTimeout(PATIENCE_MS);
    const streams = watchStreams(context);
    const open = async () => {
      const page = await context.newPage();
      await page.goto(`${house.url}/drop/told`);
      await page.getByText('100 of 100 left').waitFor();
      return page;
    };
    const first = await open();
    await until(() => streams.size === 1, 'a stream');
    const second = await open();
    await setVisibility(first, 'hidden');
    await until(() => [...streams.values()].includes(second), 'the other tab holds the stream');
    await until(() => streams.size === 1, 'the hidden tab has let go');
    const third = await open();
    const before = (await (await fetch(`${house.url}/v1/pools/told`)).json()) as { available: number };
    assert.equal(before.available, 100);
    assert.equal((await claim(house.url, 'told', { user_id: 'buyer' })).status, 201);
    for (const page of [second, third]) await page.getByText('99 of 100 left').waitFor();
    assert.equal(streams.size, 1);
    // Back in view, the first tab shows what is now, although what it is told first may be a second old.
    await first.route('**/v1/pools/told', (route) => route.fulfill({ json: before }));
    await setVisibility(first, 'visible');
    await first.getByText('99 of 100 left').waitFor();
    assert.equal(streams.size, 1);
    await context.close();
  });

  it('show the console: the last one loads its page, and all are live, whichever is closed', async () => {
    const first = await house.signIn('/');
    const context = first.context();
    context.setDefaultTimeout(PATIENCE_MS);
    const streams = watchStreams(context);
    await first.reload();
    const pages = [first];
    while (pages.length < TABS) {
      const page = await context.newPage();
      await page.goto(`${house.url}/`);
      pages.push(page);
    }
    const last = pages.at(-1) as Page;
    await last.getByRole('link', { name: 'Audit' }).click();
    await last.getByRole('heading', { level: 1, name: 'Audit' }).waitFor();
    await last.getByText('hook host allow').first().waitFor();
    for (const page of pages) await page.locator('.lamp-ok', { hasText: 'live' }).waitFor();
    await until(() => streams.size === 1, 'one stream for all');
    const [holder] = streams.values();
    await holder?.close();
    await putOnSale(house.db1, 'made_later', 7);
    for (const page of pages) {
      if (page === holder || page === last) continue;
      await page.getByText('made_later').waitFor();
    }
    await until(() => streams.size === 1, 'still one');
    await context.close();
  });

  it('take the stream over from a tab that says nothing more', async () => {
    const first = await house.signIn('/');
    const context = first.context();
    context.setDefaultTimeout(PATIENCE_MS);
    const streams = watchStreams(context);
    // A sleeping tab keeps its lock and sends no messages.
    await context.addInitScript(`{
      const post = BroadcastChannel.prototype.postMessage;
      BroadcastChannel.prototype.postMessage = function (message) { if (!window.isAsleep) post.call(this, message); };
    }`);
    await first.reload();
    await first.locator('.lamp-ok', { hasText: 'live' }).waitFor();
    const second = await context.newPage();
    await second.goto(`${house.url}/`);
    await second.locator('.lamp-ok', { hasText: 'live' }).waitFor();
    assert(![...streams.values()].includes(second), 'it listens to the first');
    await first.evaluate('window.isAsleep = true');
    await until(() => [...streams.values()].includes(second), 'the second took over');
    await second.locator('.lamp-ok', { hasText: 'live' }).waitFor();
    await until(() => streams.size === 1, 'the first has let go');
    await context.close();
  });
});
