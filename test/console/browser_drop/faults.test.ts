import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { putOnSale } from '../../server/support.ts';
import { ensureChromium } from '../chromium.ts';
import { assertAccessible, assertFits, openShop, type Shop, scene } from './support.ts';

const chromium = await ensureChromium();
const skip = 'missing' in chromium && chromium.missing;
const BUTTON = 'button.big';
const CLAIMS = '**/v1/claims/*';

/** Answers of a proxy between the buyer and the server. They say nothing about the claim. */
const STRANGERS = [
  { status: 403, json: { error: { code: 403, message: 'Forbidden' } } },
  { status: 404, json: { message: 'no Route matched with those values' } },
  { status: 401, json: { error: { code: 'auth_required' } } },
  { status: 200, json: {} },
];
const OUR_GONE = { status: 404, json: { error: { code: 'unknown_claim' } } };

describe('a buyer whose answers are wrong', { skip }, () => {
  let shop: Shop;
  before(async () => {
    shop = await openShop('path' in chromium ? chromium.path : '');
  });
  after(() => shop?.close());

  const buy = async (pool: string): Promise<Page> => {
    const page = await (await shop.visit()).newPage();
    await page.goto(`${shop.url}/drop/${pool}`);
    await page.click(BUTTON);
    await scene(page, 'held');
    return page;
  };
  /** Leaves, comes back, and waits until the new page has looked its claim up and has the answer. */
  const reload = async (page: Page): Promise<void> => {
    const url = page.url();
    await page.goto('about:blank');
    const answered = page.waitForEvent('requestfinished', (request) => /\/v1\/claims\//.test(request.url()));
    await page.goto(url);
    await answered;
  };
  const finish = (outcome: string, reason: string | null) =>
    shop.db1.query(
      `select public.bridge_finish(array_agg(msg_id), array_agg(read_ct), array_agg($1::text), array_agg($2::text), array_agg(0))
       from (select array(select lane from public.bridge_lanes()) as lanes) a
       cross join lateral public.bridge_take(a.lanes, array_fill(100, array[cardinality(a.lanes)]), 60)`,
      [outcome, reason],
    );

  it('keeps the ticket and is offered no second one', async () => {
    await putOnSale(shop.db1, 'kept', 5);
    const page = await buy('kept');
    const close = shop.openBridge();
    await scene(page, 'ticket');
    await close();
    for (const answer of [...STRANGERS, OUR_GONE]) {
      await page.route(CLAIMS, (route) => route.fulfill(answer));
      await reload(page);
      await scene(page, 'ticket');
      if (answer === OUR_GONE) await page.getByText('cannot find this ticket').waitFor();
      assert.equal(await page.locator(BUTTON).count(), 0, `after ${answer.status}`);
      await page.unroute(CLAIMS);
    }
    await assertAccessible(page);
    await assertFits(page);
    await reload(page);
    await page.getByText('kept in this browser').waitFor();
    assert.equal((await shop.claims('kept')).length, 1);
    await page.context().close();
  });

  it('keeps the seat, and finds the same one again where the server said that there is none', async () => {
    await putOnSale(shop.db1, 'found', 5);
    const page = await buy('found');
    for (const answer of STRANGERS) {
      await page.route(CLAIMS, (route) => route.fulfill(answer));
      await reload(page);
      await scene(page, 'held');
      assert.equal(await page.locator(BUTTON).count(), 0, `after ${answer.status}`);
      await page.unroute(CLAIMS);
    }
    // The control: the page does believe our own `unknown_claim`, so it ignored the answers above on purpose.
    await page.route(CLAIMS, (route) => route.fulfill(OUR_GONE));
    await page.click(BUTTON);
    await page.unroute(CLAIMS);
    await scene(page, 'held');
    assert.equal((await shop.claims('found')).length, 1, 'the request kept its id');
    await page.context().close();
  });

  it('goes on asking where a stranger refuses the press, with the same request', async () => {
    await putOnSale(shop.db1, 'wall', 5);
    const page = await (await shop.visit()).newPage();
    await page.goto(`${shop.url}/drop/wall`);
    const asked: (string | null)[] = [];
    await page.route('**/v1/pools/wall/claims', (route) => {
      asked.push(route.request().postData());
      return asked.length < 3 ? route.fulfill({ status: 403, json: { error: 'blocked' } }) : route.continue();
    });
    await page.click(BUTTON);
    await scene(page, 'held');
    assert.equal(asked.length, 3);
    assert.equal(new Set(asked).size, 1);
    await page.context().close();
  });

  it('is told how long a seat is held, and not that it is theirs when the time is over', async () => {
    await putOnSale(shop.db1, 'brief', 5, { hold_sec: 6 });
    const page = await buy('brief');
    await page.getByText(/^Held for another 00:0[1-6]$/).waitFor();
    await page.getByText('The time for confirming it has passed').waitFor();
    assert.doesNotMatch(await page.locator('main').innerText(), /yours/i);
    await assertAccessible(page);
    await page.context().close();
  });

  it('is not promised a seat that waits for the organiser', async () => {
    await shop.db1.query('delete from pgmq.q_intake_queue');
    await putOnSale(shop.db1, 'stuck', 5);
    const page = await buy('stuck');
    await finish('dead_letter', 'refused by the test');
    await page.getByText('the organiser has to look at it').waitFor();
    const text = await page.locator('main').innerText();
    assert.match(text, /confirm the seat or give it back/);
    assert.doesNotMatch(text, /yours/i);
    await assertAccessible(page);
    await assertFits(page);
    await page.context().close();
  });

  it('is offered no button where only signed-in people may buy', async () => {
    await putOnSale(shop.db1, 'members_only', 5, { require_auth: true });
    const page = await (await shop.visit()).newPage();
    await page.goto(`${shop.url}/drop/members_only`);
    await scene(page, 'sign_in');
    await page.getByText('has not set up a sign-in for this page').waitFor();
    assert.equal(await page.locator(`${BUTTON}, a.big`).count(), 0);
    await assertAccessible(page);
    // Also when the stream has told of a change, which does not say who may buy.
    await shop.db1.query(`insert into public.inventory_slots (pool_id) values ('members_only')`);
    await page.getByText('6 of 6 left').waitFor();
    await scene(page, 'sign_in');
    await page.context().close();
  });
});
