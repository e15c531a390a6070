// Findable: every id that a page shows is found by the box, lists keep their place, and a claim is acted on where it is.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Browser, chromium as browsers, type Page } from 'playwright-core';
import { bury } from '../../admin/support.ts';
import { addOperator } from '../../operators/support.ts';
import { HandWorld, type Order } from '../../orders/hand_world.ts';
import { ADMIN_KEY, putOnSale } from '../../server/support.ts';
import { claimMany } from '../../work/support.ts';
import { assertAccessible, assertFits } from '../browser_drop/support.ts';
import { CHROMIUM_ARGS, ensureChromium } from '../chromium.ts';
import { type ContextOptions, DESKTOP, picture } from './support.ts';

const chromium = await ensureChromium();
const skip = 'missing' in chromium && chromium.missing;
const PHONE = { width: 390, height: 800 };
const PATIENCE_MS = 15_000;
const CLAIMS = 160;
/** As much of a uuid as a narrow column shows: the time, the pool, and enough of chance. */
const SHOWN = 23;
/** Ids of all kinds, what leads to a row's own page, users and pools. */
const IDS = 'main .id, main .row-link, main a .given, main td[data-label="Pool"] .given';
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

describe('everything is findable in the console', { skip }, () => {
  let world: HandWorld;
  let browser: Browser;
  let order: Order;
  let letters: number[];
  let viewerKey: string;
  before(async () => {
    world = await HandWorld.start();
    viewerKey = await addOperator(world.db1, 'vera', 'viewer');
    browser = await browsers.launch({
      executablePath: 'path' in chromium ? chromium.path : '',
      args: CHROMIUM_ARGS,
    });
    await world.putOnSale('opera', 8);
    order = await world.bought('opera', 'ann', 'pi_3QhZ4aB1ann', 2);
    const link = { metadata: { claim_id: order.order_id, user_id: 'ann', verified: 'false' } };
    await world.pay(order, 'cs_link', 'pi_3QhZ4aB1link', link);
    await world.carry();
    await putOnSale(world.db1, 'many', CLAIMS);
    await claimMany(world.db1, 'many', CLAIMS);
    await putOnSale(world.db1, 'members', 5);
    letters = await bury(world.db1, 'members', 3);
    await world.post('/admin/dlq/replay', { msg_ids: [letters[2]], reason: 'repaired' });
    await world.post('/admin/claims/void', { claim_ids: [order.claims[1]], reason: 'rain', refund: true });
    await world.carry();
    await world.db2.query(
      `select calls.add_site('hotel', '{OPS_SITE_SECRET}', true, '{ring}', 'none', 'ann')`,
    );
    await world.db2.query(
      `select calls.record_calls(array['hotel', 'hotel'], array['call-1', null], array['ring', 'ring'], array['{}', '{}'],
         array[now(), now()], array['${'ab'.repeat(32)}', null])`,
    );
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

  const box = (page: Page) => page.getByRole('combobox', { name: 'Search everything' });

  /** How many the box finds by this text, as it is typed or pasted. */
  async function found(page: Page, text: string): Promise<number> {
    await box(page).fill('');
    const answered = page.waitForResponse((response) => response.url().includes('/admin/search?'));
    await box(page).fill(text);
    assert.equal((await answered).status(), 200, text);
    await page.locator('.search-found .found-foot', { hasText: /Nothing found|results?\./ }).waitFor();
    return page.getByRole('option').count();
  }

  async function places(): Promise<Record<string, string>> {
    const event = await world.db2.query(
      `select id from public.webhook_events where status = 'success' order by id limit 1`,
    );
    const call = await world.db2.query('select id from public.calls where event_id is not null');
    const buried = await world.db1.query('select claim_id from public.claims where msg_id = $1', [
      letters[0],
    ]);
    return {
      '/claims': 'many',
      [`/claims/${order.claims[0]}`]: 'From the request to the ledger',
      [`/claims/${buried.rows[0].claim_id}`]: 'Dead letter',
      '/orders': 'opera',
      [`/orders/${order.order_id}`]: 'Seats',
      '/tickets': 'opera',
      [`/tickets/${order.claims[0]}`]: 'From the claim to the ticket',
      '/payments': 'stripe/pi_3QhZ4aB1ann',
      '/payments/stripe%2Fpi_3QhZ4aB1ann': 'What moved it',
      '/credits': 'stripe/pi_3QhZ4aB1ann',
      '/users/ann': 'Balance',
      '/refunds': 'second payment',
      '/dead-letters': 'members',
      [`/dead-letters/${letters[0]}`]: 'Payload',
      '/webhooks': 'stripe',
      '/events': 'checkout.session',
      [`/events/${event.rows[0].id}`]: 'Raw body',
      '/calls': 'hotel',
      [`/calls/${call.rows[0].id}`]: 'Signature hash',
      '/audit': 'dead letter replay',
      '/audit?db=2': 'ticket void',
      '/pools': 'many',
      '/search?q=ann': 'Users',
    };
  }

  it('by every id that any page shows, pasted into the box', async () => {
    const page = await signIn('/claims');
    const shown = new Map<string, string>();
    for (const [path, text] of Object.entries(await places())) {
      await page.goto(world.server.url + path);
      await page.locator('main').getByText(text).first().waitFor();
      await page.locator('.skeleton').waitFor({ state: 'detached' });
      const texts = await page.locator(IDS).allTextContents();
      for (const id of await page.locator('main .id-short').allTextContents())
        if (UUID.test(id)) shown.set(`${id.slice(0, SHOWN)}…`, path);
      assert(texts.length > 0 || path === '/search', `${path} shows no id`);
      for (const one of texts) {
        shown.set(one.trim(), path);
      }
    }
    assert(shown.size > 60, `only ${shown.size} were shown`);
    const lost: string[] = [];
    for (const [id, path] of shown) if ((await found(page, id)) === 0) lost.push(`${id} of ${path}`);
    assert.deepEqual(lost, []);
    // The control: a tail is not shown by any page, and not found.
    assert.equal(await found(page, order.order_id.slice(-12)), 0);
    await page.context().close();
  });

  it('by the keyboard alone: slash, arrows, Enter; and Escape leaves', async () => {
    const page = await signIn('/health');
    await page.getByText('DB2 ledger').waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('pi_3QhZ4aB1');
    await page.getByRole('option').first().waitFor();
    assert.equal(await box(page).getAttribute('aria-expanded'), 'true');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    const chosen = page.getByRole('option', { selected: true });
    assert.equal(await box(page).getAttribute('aria-activedescendant'), await chosen.getAttribute('id'));
    const name = await chosen.locator('.id').innerText();
    await page.keyboard.press('Enter');
    await page.getByText('What moved it').waitFor();
    assert.equal(new URL(page.url()).pathname, `/payments/${encodeURIComponent(name)}`);
    await page.keyboard.press('/');
    await page.keyboard.type('ann');
    await page.getByRole('option').first().waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('option').first().waitFor({ state: 'hidden' });
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Search', exact: true }).waitFor();
    assert.equal(new URL(page.url()).search, '?q=ann');
    // Where a person types, a slash is a slash.
    await page.goto(`${world.server.url}/claims`);
    await page.getByLabel('Request id').fill('a');
    await page.getByLabel('Request id').press('/');
    assert.equal(await page.getByLabel('Request id').inputValue(), 'a/');
    await page.context().close();
  });

  it('and a list has its total, numbers for its pages, an export, and is where it was after "back"', async () => {
    const page = await signIn('/claims?pool_id=many');
    await page.getByText(`${CLAIMS} in all`).waitFor();
    await page.getByRole('link', { name: 'Next' }).click();
    await page.locator('.pager-here', { hasText: '2' }).waitFor();
    await page.getByRole('link', { name: 'Next' }).click();
    await page.locator('.pager-here', { hasText: '3' }).waitFor();
    const rows = () => page.locator('.row-link').allTextContents();
    const third = await rows();
    const address = page.url();
    await page.locator('.row-link').nth(30).scrollIntoViewIfNeeded();
    const y = await page.evaluate('scrollY');
    assert(Number(y) > 100);
    await page.locator('.row-link').nth(30).click();
    await page.getByRole('heading', { name: 'Claim', exact: true }).waitFor();
    assert.equal(await page.evaluate('scrollY'), 0);
    await page.goBack();
    await page.locator('.row-link').nth(30).waitFor();
    await page.waitForFunction(`Math.abs(scrollY - ${y}) < 5`);
    assert.equal(page.url(), address);
    assert.deepEqual(await rows(), third);
    // By the number alone, and from the field.
    await page.goto(`${world.server.url}/claims?pool_id=many&page=3`);
    await page.locator('.row-link').nth(30).waitFor();
    assert.deepEqual(await rows(), third);
    await page.getByLabel('Page', { exact: true }).fill('4');
    await page.getByRole('button', { name: 'Go', exact: true }).click();
    await page.locator('.pager-here', { hasText: '4' }).waitFor();
    assert.equal((await rows()).length, CLAIMS - 150);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'CSV' }).click(),
    ]);
    assert.match(download.suggestedFilename(), /^sluice-claims-.*\.csv$/);
    await page.context().close();
  });

  it('a dead-lettered claim is tried without a reason, replayed on its own page, and shows its audit row', async () => {
    const { rows } = await world.db1.query('select claim_id from public.claims where msg_id = $1', [
      letters[1],
    ]);
    const page = await signIn(`/claims/${rows[0].claim_id}`);
    await page.getByRole('button', { name: 'Replay…' }).click();
    await page.getByRole('button', { name: 'Dry run' }).click();
    await page.getByText('1 would replay').waitFor();
    await page.getByRole('button', { name: 'Yes, replay' }).click();
    // It needs a reason: the browser says so, and nothing was sent.
    assert.equal(await page.getByRole('dialog').count(), 1);
    await page.getByLabel('Reason', { exact: true }).fill('the hook is repaired');
    await page.getByRole('button', { name: 'Yes, replay' }).click();
    await page.getByText('1 replayed.').waitFor();
    await page.locator('.step-head', { hasText: /replayed by an operator/i }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Replay…' }).count(), 0);
    await page.getByRole('link', { name: 'Audit row' }).click();
    await page.getByRole('cell', { name: 'the hook is repaired' }).waitFor();
    assert.equal(await page.locator('tbody tr').count(), 1);
    await page.context().close();
  });

  it('times say their zone, and one switch turns all of them', async () => {
    const page = await signIn(`/claims/${order.claims[0]}`, { timezoneId: 'America/New_York' });
    const zones = async () => new Set(await page.locator('time .zone').allTextContents());
    await page.locator('time .zone').first().waitFor();
    assert.match([...(await zones())].join(), /^(GMT-[45]|E[SD]T)$/);
    const at = page.locator('.step time').first();
    const local = await at.innerText();
    await page.getByRole('button', { name: /Times in UTC/ }).click();
    assert.deepEqual(await zones(), new Set(['UTC']));
    assert.notEqual(await at.innerText(), local);
    await page.goto(`${world.server.url}/claims`);
    await page.locator('time .zone').first().waitFor();
    assert.deepEqual(await zones(), new Set(['UTC']));
    await page.context().close();
  });

  for (const [scheme, options] of Object.entries({
    light: { colorScheme: 'light' },
    dark: { colorScheme: 'dark', viewport: PHONE },
  } as const))
    it(`has pages that axe has nothing against and that fit, in ${scheme}`, async () => {
      const page = await signIn('/', options);
      const complaints: string[] = [];
      page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
      for (const [path, text] of Object.entries(await places())) {
        await page.goto(world.server.url + path);
        await page.locator('main').getByText(text).first().waitFor();
        await page.locator('.skeleton').waitFor({ state: 'detached' });
        await assertAccessible(page);
        await assertFits(page);
        const name = /^\/(tickets|payments|users|search|credits)/.exec(path)?.[1];
        if (name !== undefined) await picture(page, `find-${name}-${path.split('/').length}-${scheme}`);
      }
      await found(page, 'ann');
      await assertAccessible(page);
      await assertFits(page);
      await picture(page, `find-box-${scheme}`);
      assert.deepEqual(complaints, []);
      await page.context().close();
    });

  it('a viewer sees a user, and is not offered to export or erase one; an admin is', async () => {
    const page = await signIn('/users/ann', {}, viewerKey);
    await page.getByRole('heading', { name: 'Balance' }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Erase…' }).count(), 0);
    assert.equal(await page.getByRole('button', { name: 'Export…' }).count(), 0);
    await page.context().close();
    const admin = await signIn('/users/ann');
    await admin.getByRole('button', { name: 'Export…' }).click();
    const [download] = await Promise.all([
      admin.waitForEvent('download'),
      admin.getByRole('button', { name: 'Export', exact: true }).click(),
    ]);
    assert.equal(download.suggestedFilename(), 'sluice-user.json');
    await admin.getByText('user export').first().waitFor();
    await admin.getByRole('button', { name: 'Erase…' }).click();
    await admin.getByLabel('Type the name of the user').fill('bob');
    await admin.getByLabel('Reason', { exact: true }).fill('asked for');
    await admin.getByRole('button', { name: 'Yes, erase for good' }).click();
    await admin.getByText('is not the name of this user').waitFor();
    await admin.getByLabel('Type the name of the user').fill('ann');
    await admin.getByRole('button', { name: 'Yes, erase for good' }).click();
    await admin.getByText(/stands in the place of the name/).waitFor();
    assert.match(new URL(admin.url()).pathname, /^\/users\/erased/);
    await admin.context().close();
  });
});
