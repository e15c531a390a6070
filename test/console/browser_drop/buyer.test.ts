import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { ADMIN_KEY, bearer, putOnSale } from '../../server/support.ts';
import { ensureChromium } from '../chromium.ts';
import { assertAccessible, assertFits, hold, openShop, picture, type Shop, scene } from './support.ts';

const chromium = await ensureChromium();
const skip = 'missing' in chromium && chromium.missing;
const BUTTON = 'button.big';
const HALF_AN_HOUR_MS = 1_800_000;
/** The slower end of 3G. */
const SLOW = { offline: false, latency: 400, downloadThroughput: 50_000, uploadThroughput: 20_000 };

describe('a buyer on the drop page', { skip }, () => {
  let shop: Shop;
  before(async () => {
    shop = await openShop('path' in chromium ? chromium.path : '');
  });
  after(() => shop?.close());

  const open = async (pool: string, options?: Parameters<Shop['visit']>[0]): Promise<Page> => {
    const context = await shop.visit(options);
    const page = await context.newPage();
    await page.goto(`${shop.url}/drop/${pool}`);
    return page;
  };

  it('comes from the countdown to the ticket without a reload, and it is the ticket of the ledger', async () => {
    await putOnSale(shop.db1, 'summer_night_2026', 1_000, {
      opens_at: new Date(Date.now() + HALF_AN_HOUR_MS),
    });
    // A clock that is an hour slow: the countdown must not care.
    const context = await shop.visit();
    await context.addInitScript('{ const real = Date.now; Date.now = () => real() - 3_600_000; }');
    const page = await context.newPage();
    await page.goto(`${shop.url}/drop/summer_night_2026`);
    await scene(page, 'countdown');
    assert.equal(await page.locator(BUTTON).count(), 0);
    assert.match(
      await page.locator('.countdown').innerText(),
      /^00\s+hours\s+(29|30)\s+minutes\s+\d\d\s+seconds$/,
    );
    assert.match(await page.title(), /^(29|30):\d\d · Summer Night 2026$/);
    await assertAccessible(page);
    await picture(page, 'drop-countdown');

    await shop.db1.query(
      `update public.engine_config set opens_at = now() + interval '2 seconds' where pool_id = 'summer_night_2026'`,
    );
    await scene(page, 'open');
    await assertAccessible(page);
    await picture(page, 'drop-open');
    await page.click(BUTTON);
    await scene(page, 'held');
    const [claim] = await shop.claims('summer_night_2026');
    assert.equal(claim?.state, 'queued');
    await page.locator('.left b', { hasText: '999' }).waitFor();
    await assertAccessible(page);

    const close = shop.openBridge();
    await scene(page, 'ticket');
    await close();
    const text = await page.locator('.ticket').innerText();
    assert(claim !== undefined && text.includes(claim.claim_id) && text.includes(claim.slot_id), text);
    const { rows } = await shop.db2.query(
      'select user_id from public.confirmed_tickets where claim_id = $1',
      [claim.claim_id],
    );
    assert.deepEqual(rows, [{ user_id: claim.user_id }]);
    await assertAccessible(page);
    await assertFits(page);
    await picture(page, 'drop-ticket');
    await page.setViewportSize({ width: 1_280, height: 800 });
    await assertFits(page);
    await page.reload();
    await scene(page, 'ticket');
    await context.close();
  });

  it('gets one seat for a double click, a reload and a second tab; a browser that forgets gets another', async () => {
    await putOnSale(shop.db1, 'twice', 10);
    const page = await open('twice');
    await page.dblclick(BUTTON);
    await scene(page, 'held');
    await page.reload();
    await scene(page, 'held');
    const tab = await page.context().newPage();
    await tab.goto(`${shop.url}/drop/twice`);
    await scene(tab, 'held');
    const [claim, ...more] = await shop.claims('twice');
    assert.deepEqual(more, []);
    assert(
      (await tab.locator('.held-seat').innerText()).includes(claim?.slot_id.slice(-4).toUpperCase() ?? '-'),
    );

    // The kept request is what holds the promise: without it the next press is another buyer's.
    await tab.close();
    // From a page that does not write there: the drop page notes its claim at each look.
    await page.goto(`${shop.url}/healthz`);
    await page.evaluate('localStorage.clear()');
    await page.goto(`${shop.url}/drop/twice`);
    await page.click(BUTTON);
    await scene(page, 'held');
    assert.equal((await shop.claims('twice')).length, 2);
    await page.context().close();
  });

  it('gets one seat when two tabs press at once', async () => {
    await putOnSale(shop.db1, 'tabs', 10);
    const first = await open('tabs');
    const second = await first.context().newPage();
    await second.goto(`${shop.url}/drop/tabs`);
    await Promise.all([scene(first, 'open'), scene(second, 'open')]);
    const requests: (string | null)[] = [];
    let letThrough: () => void = () => undefined;
    const bothAsked = new Promise<void>((resolve) => {
      letThrough = resolve;
    });
    await first.context().route('**/v1/pools/tabs/claims', async (route) => {
      if (requests.push(route.request().postData()) === 2) letThrough();
      await bothAsked;
      await route.continue();
    });
    // The second tab hears of the first one's press, and may be faster than the hand.
    await Promise.all([first, second].map((page) => page.locator(BUTTON).dispatchEvent('click')));
    await Promise.all([scene(first, 'held'), scene(second, 'held')]);
    assert.equal(requests.length, 2);
    assert.equal(requests[0], requests[1]);
    assert.equal((await shop.claims('tabs')).length, 1);
    await first.context().close();
  });

  it('loses the connection, is told so, and gets the seat when it is back', async () => {
    await putOnSale(shop.db1, 'tunnel', 10);
    const page = await open('tunnel');
    await scene(page, 'open');
    await page.context().setOffline(true);
    await page.click(BUTTON);
    await page.getByText('You are offline.').waitFor();
    await page.getByText('We keep sending the same request').waitFor();
    await assertAccessible(page);
    assert.deepEqual(await shop.claims('tunnel'), []);
    await page.context().setOffline(false);
    await scene(page, 'held');
    await page.getByText('You are offline.').waitFor({ state: 'detached' });
    assert.equal((await shop.claims('tunnel')).length, 1);
    await page.context().close();
  });

  it('gets the seat that was made when only the answer was lost, also after a reload', async () => {
    await putOnSale(shop.db1, 'lost', 10);
    const page = await open('lost');
    let isLost = true;
    let asked = 0;
    await page.route('**/v1/pools/lost/claims', async (route) => {
      asked++;
      if (!isLost) return route.continue();
      await route.fetch();
      return route.abort('connectionreset');
    });
    await page.click(BUTTON);
    await page.getByText('We keep sending the same request').waitFor();
    const [made] = await shop.claims('lost');
    assert(made !== undefined);
    isLost = false;
    await page.reload();
    await scene(page, 'held');
    assert(asked >= 2);
    assert.deepEqual(await shop.claims('lost'), [made]);
    await page.context().close();
  });

  it('is told that all is sold, and gets the button back with the first seat that comes back', async () => {
    await putOnSale(shop.db1, 'last_dance_2026', 1);
    const [late, lucky] = await Promise.all([open('last_dance_2026'), open('last_dance_2026')]);
    await scene(late, 'open');
    await lucky.click(BUTTON);
    await scene(lucky, 'held');
    await scene(late, 'sold_out');
    assert.equal(await late.locator(BUTTON).count(), 0);
    await assertAccessible(late);
    const [claim] = await shop.claims('last_dance_2026');
    const headers = bearer(ADMIN_KEY);
    const place = `${shop.url}/v1/claims/${claim?.claim_id}`;
    assert.equal((await fetch(place, { method: 'DELETE', headers })).status, 200);
    await late.click(BUTTON);
    await scene(late, 'held');
    await scene(lucky, 'ended');
    await assertAccessible(lucky);
    await Promise.all([late.context().close(), lucky.context().close()]);
  });

  it('is told of a drop that is closed and of one that is not there', async () => {
    await putOnSale(shop.db1, 'shut', 5, { is_active: false });
    for (const [pool, kind] of [
      ['shut', 'closed'],
      ['nowhere', 'unknown'],
    ] as const) {
      const page = await open(pool);
      await scene(page, kind);
      assert.equal(await page.locator(BUTTON).count(), 0);
      await assertAccessible(page);
      await page.context().close();
    }
  });

  it('sees how many are ahead, fewer as they are carried, without a reload', async () => {
    await putOnSale(shop.db1, 'long_line', 20);
    // What other tests left on the queue would be ahead too.
    await shop.db1.query('delete from pgmq.q_intake_queue');
    await shop.db1.query(
      `select public.claim_resource_and_queue('long_line', 'early ' || i) from generate_series(1, 12) i`,
    );
    const page = await open('long_line');
    await page.click(BUTTON);
    await scene(page, 'held');
    await page.getByText('About 12 ahead of you').waitFor();
    await assertAccessible(page);
    await assertFits(page);
    const carry = (count: number) =>
      shop.db1.query(
        `select public.bridge_finish(array_agg(msg_id), array_agg(read_ct), array_fill('committed'::text, array[$1::int]),
           array_fill(null::text, array[$1::int]), array_fill(0, array[$1::int]))
         from public.bridge_take(array[intake.lane_of('long_line')], array[$1::int], 60)`,
        [count],
      );
    await carry(9);
    await page.getByText('About 3 ahead of you').waitFor();
    await carry(3);
    await page.getByText('You are next').waitFor();
    // The end of the line is not yet a ticket: the ticket comes with the buyer's own message.
    await scene(page, 'held');
    await carry(1);
    await scene(page, 'ticket');
    await page.getByText('ahead of you').waitFor({ state: 'detached' });
    await page.context().close();
  });

  it('can buy over a slow line: there is something to read at once, and one press is enough', async () => {
    await putOnSale(shop.db1, 'far_away', 10);
    const context = await shop.visit();
    const page = await context.newPage();
    const cdp = await context.newCDPSession(page);
    await cdp.send('Network.emulateNetworkConditions', SLOW);
    const showPool = await hold(page, '**/v1/pools/far_away/live');
    await page.goto(`${shop.url}/drop/far_away`, { waitUntil: 'commit' });
    await scene(page, 'loading');
    showPool();
    const sendClaim = await hold(page, '**/v1/pools/far_away/claims');
    await page.click(BUTTON);
    await page.getByText('Getting your ticket…').waitFor();
    sendClaim();
    await scene(page, 'held');
    assert.equal((await shop.claims('far_away')).length, 1);
    await context.close();
  });

  it('needs no mouse, no light, no motion and no more than 360 pixels', async () => {
    await putOnSale(shop.db1, 'narrow_evening_with_a_rather_long_name', 10);
    const page = await open('narrow_evening_with_a_rather_long_name', {
      viewport: { width: 360, height: 640 },
      colorScheme: 'dark',
      reducedMotion: 'reduce',
    });
    await scene(page, 'open');
    await assertFits(page);
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate('document.activeElement.className'), 'big');
    await assertAccessible(page);
    await page.keyboard.press('Enter');
    const close = shop.openBridge();
    await scene(page, 'ticket');
    await close();
    assert.equal(await page.evaluate('document.activeElement.tagName'), 'H2');
    assert.equal(await page.evaluate('document.getAnimations().length'), 0);
    await assertAccessible(page);
    await assertFits(page);
    await page.context().close();
  });

  it('buys in a pool whose name a path can only hold escaped, and finds the seat again after a reload', async () => {
    const pool = 'Fête 1/2 & more?';
    await putOnSale(shop.db1, pool, 10);
    const page = await open(encodeURIComponent(pool));
    await scene(page, 'open');
    assert.match(await page.title(), /Fête 1\/2 & More\?/i);
    await page.click(BUTTON);
    await scene(page, 'held');
    await page.locator('.left b', { hasText: '9' }).waitFor();
    await page.reload();
    await scene(page, 'held');
    assert.equal((await shop.claims(pool)).length, 1);
    await page.context().close();
  });
});
