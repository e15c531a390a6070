// A buyer with a real browser, a pool that is paid for, and Stripe's stand-in in a process of its own.

import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { assertAccessible, assertFits, picture, scene } from '../console/browser_drop/support.ts';
import { CHROMIUM_ARGS, ensureChromium } from '../console/chromium.ts';
import { OrderWorld, until } from '../orders/world.ts';
import { ADMIN_KEY, ask, bearer } from '../server/support.ts';
import { TICKET_SECRET } from './support.ts';

const found = await ensureChromium();
const skip = 'missing' in found && found.missing;
const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, locale: 'en-GB' };
const BUTTON = 'button.big';
const PAY_AT_STRIPE = 'button[type=submit]';

describe('a buyer of a pool that is paid for', { skip }, () => {
  let world: OrderWorld;
  let browser: Browser;
  let stop: () => Promise<void> = async () => undefined;
  const contexts: BrowserContext[] = [];
  before(async () => {
    world = await OrderWorld.start({ ticketSecrets: [TICKET_SECRET] });
    browser = await chromium.launch({
      executablePath: 'path' in found ? found.path : '',
      args: CHROMIUM_ARGS,
    });
  });
  afterEach(async () => {
    await stop();
    stop = async () => undefined;
    await Promise.all(contexts.splice(0).map((context) => context.close()));
    await world.standIn.control.set({ down: false, cut: false, slowMs: 0, webhooks: 'on', failNext: 0 });
  });
  after(async () => {
    await browser?.close();
    await world?.stop();
  });

  async function visit(options: Parameters<Browser['newContext']>[0] = {}): Promise<Page> {
    const context = await browser.newContext({ ...PHONE, ...options });
    context.setDefaultTimeout(15_000);
    contexts.push(context);
    return context.newPage();
  }

  async function open(pool: string): Promise<Page> {
    const page = await visit();
    await page.goto(`${world.server.url}/drop/${pool}`);
    await scene(page, 'open');
    return page;
  }

  /** From the open pool to Stripe's page. */
  async function goToPay(page: Page): Promise<void> {
    await page.click(BUTTON);
    await scene(page, 'pay');
    await page.click(BUTTON);
    await page.waitForURL(`${world.standIn.url}/**`);
  }

  const claimOf = async (pool: string): Promise<{ claim_id: string; secret: string; pool: string }> => {
    const { rows } = await world.db1.query(
      `select order_id from public.orders where pool_id = $1 order by order_id desc limit 1`,
      [pool],
    );
    return { claim_id: rows[0].order_id, secret: '', pool };
  };

  it('holds two seats, pays, and has two tickets, which open in another browser, admit once, and end with a refund', async () => {
    const pool = await world.pool(4);
    await world.db1.query(`select public.set_pool_details($1, $2, 'olga')`, [
      pool,
      {
        title: 'Summer Night',
        starts_at: '2026-07-01T18:00:00Z',
        time_zone: 'Europe/Berlin',
        place: 'Open-air stage, Park 1',
        text: 'Doors open an hour before.\n\nBring a blanket.',
      },
    ]);
    await world.db1.query(
      `update public.inventory_slots s set label = 'Row 7, seat ' || n.n
       from (select id, row_number() over (order by sale_order) as n from public.inventory_slots where pool_id = $1) n
       where n.id = s.id`,
      [pool],
    );
    const page = await open(pool);
    assert.match(
      await page.locator('.poster').innerText(),
      /Summer Night\s+Wednesday, 1 July 2026 at 20:00 CEST\s+Open-air stage/,
    );
    assert.match(await page.locator('.about').innerText(), /Doors open[\s\S]*\n\s*\n[\s\S]*blanket/);
    assert.equal(await page.locator('.price').innerText(), '€12.50');
    await page.getByLabel('One seat more').click();
    assert.equal((await page.locator('.price').innerText()).replace(/\s+/g, ' '), '€25.00 €12.50 each');
    await assertAccessible(page);
    await assertFits(page);
    await page.click(BUTTON);
    await scene(page, 'pay');
    await page.getByText('Row 7, seat 2').waitFor();
    assert.match(await page.locator('.hold').innerText(), /^Held for another (10:00|09:\d\d)$/);
    assert.equal(await page.locator(BUTTON).innerText(), 'Pay €25.00');
    await assertAccessible(page);
    await assertFits(page);
    await picture(page, 'drop-pay');
    await page.reload();
    await scene(page, 'pay');

    await page.locator(BUTTON).click();
    await page.waitForURL(`${world.standIn.url}/**`);
    stop = world.workers();
    await page.click(PAY_AT_STRIPE);
    await scene(page, 'ticket');
    assert.equal(new URL(page.url()).search, '');
    const links = page.getByRole('link', { name: /^Open the ticket for Row 7, seat [12]$/ });
    assert.equal(await links.count(), 2);
    await assertAccessible(page);
    await assertFits(page);
    const link = (await links.first().getAttribute('href')) ?? '';
    assert(link.startsWith(`${world.server.url}/t/`), link);

    const stranger = await visit({ javaScriptEnabled: false });
    await stranger.goto(link);
    assert.equal(await stranger.locator('.state').innerText(), 'Valid');
    assert.match(
      await stranger.locator('.facts').innerText(),
      /20:00 CEST[\s\S]*Open-air stage[\s\S]*Row 7, seat 1/,
    );
    const check = async () =>
      (
        await ask(`${world.server.url}/v1/tickets/check`, {
          method: 'POST',
          headers: bearer(ADMIN_KEY),
          body: { token: link },
        })
      ).json;
    const first = await check();
    assert.deepEqual([first.outcome, first.title, first.seat], ['valid', 'Summer Night', 'Row 7, seat 1']);
    assert.equal((await check()).outcome, 'used');
    await until(async () => {
      await stranger.reload();
      return (await stranger.locator('.state').innerText()) === 'Used';
    });

    const { rows } = await world.db1.query('select payment_key from public.orders where pool_id = $1', [
      pool,
    ]);
    const payment_intent = rows[0].payment_key.split('/')[1];
    await world.standIn.stripe.refunds.create({ payment_intent });
    await until(async () => (await world.free(pool)) === 4);
    assert.equal((await check()).outcome, 'voided');
    await until(async () => {
      await stranger.reload();
      return (await stranger.locator('.state').innerText()) === 'Voided';
    });
    await page.reload();
    await scene(page, 'voided');
    await assertAccessible(page);
    const next = await open(pool);
    await next.getByText('4 of 4 left').waitFor();
  });

  it('sees closing when the time is over with the payment page open, and then that the seat is gone', async () => {
    const pool = await world.pool(1);
    const page = await open(pool);
    await goToPay(page);
    await page.goBack();
    await scene(page, 'pay');
    // The button is a button again, and the same session is there still.
    await page.locator(`${BUTTON}[aria-disabled=false]`).click();
    await page.waitForURL(`${world.standIn.url}/**`);
    const tab = await page.context().newPage();
    await tab.goto(`${world.server.url}/drop/${pool}`);
    await scene(tab, 'pay');
    await world.endHold(await claimOf(pool));
    await tab.getByText('Closing').waitFor();
    await assertAccessible(tab);
    stop = world.workers();
    await scene(tab, 'ended');
    assert.match(await tab.locator('.scene').innerText(), /was not paid in time/);
    await assertAccessible(tab);
    await page.reload();
    await page.getByText('has expired').waitFor();
    await page.getByText('Back to the seller').click();
    await scene(page, 'ended');
    await page.getByText('Try for another').click();
    await scene(page, 'pay');
  });

  it('keeps the seat while Stripe is silent at the end of the hold, for the grace and no longer', async () => {
    const pool = await world.pool(1);
    const page = await open(pool);
    await goToPay(page);
    const session = new URL(page.url()).pathname.split('/').at(-1) ?? '';
    const tab = await page.context().newPage();
    await tab.goto(`${world.server.url}/drop/${pool}`);
    await scene(tab, 'pay');
    const claim = await claimOf(pool);
    await world.standIn.control.set({ down: true });
    await world.endHold(claim);
    stop = world.workers();
    await tab.getByText('Closing').waitFor();
    const sql = 'select max(attempts) as tries from public.checkouts where order_id = $1';
    await until(async () => (await world.db1.query(sql, [claim.claim_id])).rows[0].tries > 0);
    const next = await visit();
    await next.goto(`${world.server.url}/drop/${pool}`);
    await scene(next, 'sold_out');
    await world.endHold(claim, { withGrace: true });
    await scene(tab, 'ended');
    assert.match(await tab.locator('.scene').innerText(), /was not paid in time/);
    await scene(next, 'open');
    await next.getByText('1 of 1 left').waitFor();
    // The session is closed all the same, as soon as Stripe answers.
    await world.standIn.control.set({ down: false });
    await world.endHold(claim, { withGrace: true });
    await until(
      async () => (await world.standIn.stripe.checkout.sessions.retrieve(session)).status === 'expired',
    );
    await page.reload();
    await page.getByText('has expired').waitFor();
  });

  it('is told when Stripe does not answer, keeps the seat, and can try again', async () => {
    const pool = await world.pool(1);
    const page = await open(pool);
    await page.click(BUTTON);
    await scene(page, 'pay');
    await world.standIn.control.set({ down: true });
    await page.click(BUTTON);
    await page.getByText('The payment page did not open').waitFor();
    await assertAccessible(page);
    await world.standIn.control.set({ down: false });
    await page.click(BUTTON);
    await page.waitForURL(`${world.standIn.url}/**`);
  });

  for (const isTaken of [true, false])
    it(`who pays after the end has ${isTaken ? 'another seat' : 'the same seat where it is free'}, and is told so`, async () => {
      const pool = await world.pool(2);
      const page = await open(pool);
      await goToPay(page);
      const session = new URL(page.url()).pathname.split('/').at(-1) ?? '';
      await world.standIn.control.set({ down: true });
      const claim = await claimOf(pool);
      await world.endHold(claim, { withGrace: true });
      stop = world.workers();
      await until(async () => (await world.free(pool)) === 2);
      const seatOf = async (claimId: string): Promise<string> =>
        (await world.db1.query('select slot_id from public.claims where claim_id = $1', [claimId])).rows[0]
          .slot_id;
      const held = await seatOf(claim.claim_id);
      if (isTaken) assert.equal(await seatOf((await world.claim(pool, 'bob')).claim_id), held);
      await world.standIn.control.pay(session);
      await world.standIn.control.set({ down: false });
      await until(async () => (await world.tickets(pool)).length === 1);
      assert.equal((await seatOf((await world.tickets(pool))[0] ?? '')) === held, !isTaken);
      await page.goto(`${world.server.url}/drop/${pool}?claim=${claim.claim_id}`);
      await scene(page, 'ticket');
      const told = isTaken ? 'another seat than the one that was held' : 'your seat was still free';
      await page.getByText(told).waitFor();
      await assertAccessible(page);
    });

  it('who pays after the end when all is sold has the money back, and is told so', async () => {
    const pool = await world.pool(1);
    const page = await open(pool);
    await goToPay(page);
    const session = new URL(page.url()).pathname.split('/').at(-1) ?? '';
    await world.standIn.control.set({ down: true });
    const claim = await claimOf(pool);
    await world.endHold(claim, { withGrace: true });
    stop = world.workers();
    await until(async () => (await world.free(pool)) === 1);
    await world.claim(pool, 'bob');
    await world.standIn.control.pay(session);
    await world.standIn.control.set({ down: false });
    await page.goto(`${world.server.url}/drop/${pool}?claim=${claim.claim_id}`);
    await scene(page, 'refund');
    await page.getByText('Your money was sent back').waitFor({ timeout: 30_000 });
    assert.match(await page.locator('.scene').innerText(), /€12\.50/);
    await assertAccessible(page);
  });

  it('comes back to an attempt that was left for another one, and is told where this browser knows none', async () => {
    const pool = await world.pool(3);
    const page = await open(pool);
    await goToPay(page);
    const left = await claimOf(pool);
    stop = world.workers();
    await world.endHold(left);
    await page.goto(`${world.server.url}/drop/${pool}`);
    await scene(page, 'ended');
    await page.click(BUTTON);
    await scene(page, 'pay');
    const now = await claimOf(pool);
    assert.notEqual(now.claim_id, left.claim_id);
    await page.goto(`${world.server.url}/drop/${pool}?claim=${left.claim_id}`);
    await scene(page, 'ended');
    const stranger = await visit();
    await stranger.goto(`${world.server.url}/drop/${pool}?claim=${left.claim_id}`);
    await stranger.getByText('this browser did not ask for').waitFor();
    assert((await stranger.locator('.banner').innerText()).includes(left.claim_id));
    await assertAccessible(stranger);
  });

  it('gives the seats back, also with the payment page open', async () => {
    const pool = await world.pool(2);
    const page = await open(pool);
    await page.getByLabel('One seat more').click();
    await goToPay(page);
    await page.goBack();
    await scene(page, 'pay');
    stop = world.workers();
    page.once('dialog', (dialog) => void dialog.accept());
    await page.getByText('Give these seats back').click();
    await scene(page, 'ended');
    await until(async () => (await world.free(pool)) === 2);
  });
});
