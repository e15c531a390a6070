// Orders and refunds in a real browser: found, followed, taken back and paid back.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Browser, chromium as browsers, type Page } from 'playwright-core';
import { addOperator } from '../../operators/support.ts';
import { HandWorld, type Order, PRICE } from '../../orders/hand_world.ts';
import { ADMIN_KEY } from '../../server/support.ts';
import { assertAccessible, assertFits } from '../browser_drop/support.ts';
import { CHROMIUM_ARGS, ensureChromium } from '../chromium.ts';
import { type ContextOptions, DESKTOP, picture } from './support.ts';

const chromium = await ensureChromium();
const skip = 'missing' in chromium && chromium.missing;
const PHONE = { width: 390, height: 800 };
const PATIENCE_MS = 15_000;

describe('orders in the console', { skip }, () => {
  let world: HandWorld;
  let browser: Browser;
  let order: Order;
  let viewerKey: string;
  before(async () => {
    world = await HandWorld.start();
    viewerKey = await addOperator(world.db1, 'vera', 'viewer');
    browser = await browsers.launch({
      executablePath: 'path' in chromium ? chromium.path : '',
      args: CHROMIUM_ARGS,
    });
    await world.putOnSale('opera', 8);
    await world.db1.query(
      `update public.inventory_slots s set label = 'Row B, seat ' || n.nth
       from (select i.id, row_number() over (order by i.sale_order) as nth from public.inventory_slots i) n where n.id = s.id`,
    );
    order = await world.bought('opera', 'ann', 'pi_3QhZ4aB1ann', 3);
    await world.order('opera', 'bob', 2);
    // A second payment by a link of the seller's: an operator decides.
    const link = { metadata: { claim_id: order.order_id, user_id: 'ann', verified: 'false' } };
    await world.pay(order, 'cs_link', 'pi_3QhZ4aB1link', link);
    await world.carry();
  });
  after(async () => {
    await browser?.close();
    await world?.stop();
  });

  async function signIn(path: string, options: ContextOptions = {}, key = ADMIN_KEY): Promise<Page> {
    const context = await browser.newContext({ viewport: DESKTOP, locale: 'en-GB', ...options });
    context.setDefaultTimeout(PATIENCE_MS);
    const headers = { 'x-sluice-csrf': '1' };
    await context.request.post(`${world.server.url}/admin/session`, { data: { key }, headers });
    const page = await context.newPage();
    await page.goto(world.server.url + path);
    return page;
  }

  for (const [scheme, options] of Object.entries({
    light: { colorScheme: 'light' },
    dark: { colorScheme: 'dark', viewport: PHONE },
  } as const))
    it(`have pages that axe has nothing against and that fit, in ${scheme}`, async () => {
      const page = await signIn('/orders', options);
      const complaints: string[] = [];
      page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
      const check = async (path: string, text: string): Promise<void> => {
        await page.goto(world.server.url + path);
        await page.getByText(text).first().waitFor();
        await assertAccessible(page);
        await assertFits(page);
      };
      await check('/orders?pool_id=opera', 'EUR 75.00');
      await check('/refunds', 'second payment');
      await page.getByRole('checkbox').last().check();
      await page.getByRole('button', { name: 'Send…' }).click();
      await assertAccessible(page);
      await check(`/orders/${order.order_id}`, 'Payment accepted for these seats');
      if (scheme === 'light') await picture(page, 'order');
      await page.getByLabel('Select seat Row B, seat 1').check();
      await page.getByRole('button', { name: 'Void…' }).click();
      await assertAccessible(page);
      await assertFits(page);
      await check('/pools/opera', 'Price');
      assert.deepEqual(complaints, []);
      await page.context().close();
    });

  it('are found by pool and status, and from a claim; the timeline goes from the hold to the tickets', async () => {
    const page = await signIn('/pools/opera');
    await page.getByRole('link', { name: 'Orders' }).last().click();
    await page.getByRole('cell', { name: 'bob' }).waitFor();
    await page.getByLabel('Status').selectOption('paid');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('cell', { name: 'bob' }).waitFor({ state: 'detached' });
    await page.locator('.row-link').first().click();
    await page.locator('.step-head', { hasText: /^tickets/i }).waitFor();
    const steps = await page.locator('.step-head strong').allInnerTexts();
    assert.deepEqual(
      ['seats held', 'checkout at Stripe', 'payment accepted for these seats', 'tickets'].filter(
        (step) => !steps.map((text) => text.toLowerCase()).includes(step.toLowerCase()),
      ),
      [],
      steps.join(', '),
    );
    await page.goto(`${world.server.url}/claims/${order.claims[1]}`);
    await page.getByRole('link', { name: 'Order of 3 seats' }).click();
    await page.getByRole('heading', { name: 'Order', exact: true }).waitFor();
    assert.match(page.url(), new RegExp(`/orders/${order.order_id}$`));
    await page.context().close();
  });

  it('are voided in part: the seat is on sale again, its price is owed, and the timeline says who and why', async () => {
    const page = await signIn(`/orders/${order.order_id}`);
    await page.getByLabel('Select seat Row B, seat 2').check();
    await page.getByRole('button', { name: 'Void…' }).click();
    await page.getByLabel('Reason', { exact: true }).fill('a broken chair');
    await page.getByRole('button', { name: 'Yes, void' }).click();
    await page.getByText('1 void requested.').waitFor();
    await world.carry();
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByText('Seats on sale again').waitFor();
    await page.getByText('a broken chair').first().waitFor();
    await page.getByText('Refund owed').waitFor();
    await page.getByRole('row', { name: /Row B, seat 2 voided void/ }).waitFor();
    await page.context().close();
  });

  it('owe refunds, which an operator tries out, then sends', async () => {
    const page = await signIn('/refunds?state=review');
    await page.getByLabel('Select refund settle:stripe/pi_3QhZ4aB1link').check();
    await page.getByRole('button', { name: 'Send…' }).click();
    await page.getByLabel('Reason', { exact: true }).fill('she wrote to us');
    await page.getByRole('button', { name: 'Dry run' }).click();
    await page.getByText('1 would send').waitFor();
    await page.getByRole('button', { name: 'Yes, send' }).click();
    await page.getByText('No refund matches').waitFor();
    const { rows } = await world.db2.query(
      `select state, amount::int from public.refunds_due where id = 'settle:stripe/pi_3QhZ4aB1link'`,
    );
    assert.deepEqual(rows, [{ state: 'due', amount: 3 * PRICE }]);
    await page.context().close();
  });

  it('can be looked at by a viewer, who is offered nothing else', async () => {
    const page = await signIn(`/orders/${order.order_id}`, {}, viewerKey);
    await page.getByRole('heading', { name: 'Seats' }).waitFor();
    assert.equal(await page.getByRole('checkbox').count(), 0);
    await page.goto(`${world.server.url}/refunds`);
    await page.getByRole('cell', { name: 'second payment' }).waitFor();
    assert.equal(await page.getByRole('checkbox').count(), 0);
    await page.context().close();
  });
});
