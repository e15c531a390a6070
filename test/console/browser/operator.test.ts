import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { ADMIN_KEY, claim, putOnSale } from '../../server/support.ts';
import { assertAccessible } from '../browser_drop/support.ts';
import { ensureChromium } from '../chromium.ts';
import { addEndpoint, deliver, onLedger, processEvents } from './deliveries.ts';
import { bury } from './seed.ts';
import { type House, openHouse, picture } from './support.ts';

const chromium = await ensureChromium();
const skip = 'missing' in chromium && chromium.missing;

describe('an operator', { skip }, () => {
  let house: House;
  before(async () => {
    house = await openHouse('path' in chromium ? chromium.path : '');
  });
  after(() => house?.close());
  const leave = (page: Page) => page.context().close();
  const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name }).waitFor();

  it('is asked for the key on every page, and a wrong one opens none', async () => {
    const page = await (await house.visit()).newPage();
    await page.goto(`${house.url}/health`);
    await heading(page, 'Sign in to the console');
    await page.getByLabel('Your key').fill(`${ADMIN_KEY}x`);
    await page.keyboard.press('Enter');
    assert.match((await page.getByRole('alert').textContent()) ?? '', /not known here/);
    assert.equal(await page.getByRole('navigation').count(), 0);
    // As it is pasted, with what came along.
    await page.getByLabel('Your key').fill(` ${ADMIN_KEY} `);
    await page.keyboard.press('Enter');
    await heading(page, 'Health');
    await page.getByText('DB2 ledger').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await heading(page, 'Sign in to the console');
    await page.reload();
    await heading(page, 'Sign in to the console');
    await leave(page);
  });

  it('goes from the alarm to a replayed dead letter, and the claim becomes a ticket', async () => {
    await bury(house, 'members');
    await bury(house, 'partners');
    const page = await house.signIn('/');
    await page.getByText('4 dead letters', { exact: true }).waitFor();
    await page.getByText('Workers do not try them again: replay them when the cause is mended.').waitFor();
    await page.getByRole('link', { name: 'Look at them' }).click();
    await page.getByRole('link', { name: '#1' }).click();
    await page.getByText('status 500', { exact: true }).waitFor();
    await page.getByLabel('Payload').getByText('"pool_id": "members"').waitFor();
    const claimPath = (await page.locator('a[href^="/claims/"]').getAttribute('href')) ?? '';
    house.validation.status = 200;
    await page.goBack();
    await page.getByLabel('Select letter 1').check();
    await page.getByLabel('Select letter 2').check();
    await page.getByRole('button', { name: 'Replay…' }).click();
    await page.getByLabel('Reason', { exact: true }).fill('the validation service is repaired');
    await page.getByRole('button', { name: 'Dry run' }).click();
    await page.getByText('Dry run: nothing was changed.').waitFor();
    await page.getByText('would replay').waitFor();
    await picture(page, 'replay');
    await page.getByRole('button', { name: 'Yes, replay' }).click();
    await page.getByText('2 replayed.').waitFor();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByRole('link', { name: '#1' }).waitFor({ state: 'detached' });
    assert.equal(await page.getByRole('row').count(), 3, 'the head, and the letters that were not chosen');
    await page.goto(house.url + claimPath);
    const timeline = page.locator('.timeline');
    await page.getByText('the validation service is repaired').waitFor();
    for (const patience = Date.now() + 10_000; (await timeline.getByText('committed').count()) === 0; ) {
      assert(Date.now() < patience, 'the claim is not committed');
      await page.getByRole('button', { name: 'Refresh' }).click();
      await page.waitForTimeout(100);
    }
    await picture(page, 'claim');
    await page.goto(`${house.url}/audit`);
    const rows = page.getByRole('row', { name: /admin dead letter replay dead letter \d the validation/ });
    await rows.first().waitFor();
    assert.equal(await rows.count(), 2);
    await leave(page);
  });

  it('discards what is left, with the keyboard alone', async () => {
    const page = await house.signIn('/dead-letters');
    await page.getByRole('link', { name: '#3' }).waitFor();
    await page.getByLabel('Select all').focus();
    await page.keyboard.press('Space');
    const opener = page.getByRole('button', { name: 'Discard…' });
    await opener.focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog');
    await dialog.waitFor();
    const isInside = () =>
      page.evaluate(
        'document.activeElement.closest("dialog") !== null || document.activeElement === document.body',
      );
    for (let steps = 0; steps < 12; steps++) {
      await page.keyboard.press('Tab');
      assert(await isInside(), 'the focus left the dialog for the page below');
    }
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    assert(
      await opener.evaluate((element) => element === element.ownerDocument.activeElement),
      'the focus is back',
    );
    await page.keyboard.press('Enter');
    await page.keyboard.type('a test order');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByText('No dead letters', { exact: true }).waitFor();
    await leave(page);
  });

  it('finds the webhooks that wait on the overview, and replays a dead event once its cause is mended', async () => {
    await addEndpoint(house, 'stripe', 'stripe', { max_attempts: 1 });
    await onLedger(house, (db2) =>
      db2.query(`alter table public.credit_ledger add constraint nothing_for_eve check (user_id <> 'eve')`),
    );
    await deliver(house, 'stripe', 'payment_intent.succeeded', 'evt_7', { user: 'eve' });
    await processEvents(house);
    await deliver(house, 'stripe', 'payment_intent.succeeded', 'evt_6');
    const page = await house.signIn('/');
    const tile = page.locator('.tile', { hasText: 'Webhook backlog' });
    await tile.getByText('1', { exact: true }).waitFor();
    await processEvents(house);
    await tile.getByText('0', { exact: true }).waitFor();
    await page.getByText('1 dead letter', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Look at them' }).click();
    await page.getByRole('link', { name: 'evt_7' }).click();
    await page.getByLabel('Raw body').getByText('"id":"pi_7"').waitFor();
    await onLedger(house, (db2) =>
      db2.query('alter table public.credit_ledger drop constraint nothing_for_eve'),
    );
    await page.getByRole('button', { name: 'Replay…' }).click();
    await page.getByLabel('Reason', { exact: true }).fill('the rule is gone');
    await page.getByRole('button', { name: 'Dry run' }).click();
    await page.getByText('would replay').waitFor();
    await page.getByRole('button', { name: 'Yes, replay' }).click();
    await page.getByText('1 replayed.').waitFor();
    await processEvents(house);
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.locator('.page-title').getByText('success').waitFor();
    await page.goto(`${house.url}/audit?db=2`);
    await page.getByRole('row', { name: /admin .*replay .*the rule is gone/ }).waitFor();
    await leave(page);
  });

  it('sees why events failed, replays the issue with a plan first, and finds it open again where nothing was mended', async () => {
    for (const id of ['evt_21', 'evt_22'])
      await deliver(house, 'stripe', 'payment_intent.succeeded', id, { isBad: true });
    await processEvents(house);
    const page = await house.signIn('/issues');
    const row = page.getByRole('row', {
      name: /payment_intent\.succeeded open currency is not three letters 2 event webhook\.apply_payment/,
    });
    await assertAccessible(page);
    await row.getByRole('link').click();
    await heading(page, 'webhook.apply_payment fails on payment_intent.succeeded');
    await page.getByText('Failures now').waitFor();
    await assertAccessible(page);
    await page.getByRole('button', { name: 'Replay…' }).click();
    await page.getByRole('button', { name: 'Dry run' }).click();
    await page.getByText('Dry run: nothing was changed.').waitFor();
    await page.getByText('2 would replay').waitFor();
    assert.equal(await page.locator('dialog a[href^="/events/"]').count(), 2);
    // These failed for good, each by itself: no worker leaves the handler alone.
    assert.equal(await page.locator('dialog .alarm').count(), 0);
    await assertAccessible(page);
    await page.getByLabel('Reason', { exact: true }).fill('try again');
    await page.getByRole('button', { name: 'Yes, replay' }).click();
    await page.getByText('2 replayed.').waitFor();
    await page.locator('.chip', { hasText: 'resolved' }).waitFor();
    await page.getByRole('link', { name: 'Audit row', exact: true }).click();
    await page.getByRole('row', { name: /admin issue replay issue \S+ try again/ }).waitFor();
    await page.goBack();
    await processEvents(house);
    await page.reload();
    await page.locator('.chip', { hasText: 'reopened' }).waitFor();
    await page.getByRole('link', { name: 'All of them' }).click();
    await heading(page, 'Dead letters');
    assert.equal(
      await page.getByRole('textbox', { name: 'Error' }).inputValue(),
      'currency is not three letters',
    );
    await page.getByLabel('Select all').check();
    await page.getByRole('button', { name: 'Skip…' }).click();
    await page.getByLabel('Reason', { exact: true }).fill('not our currency');
    await page.getByRole('button', { name: 'Yes, skip' }).click();
    await page.getByText('2 skipped.').waitFor();
    await page.goto(`${house.url}/issues?state=open&kind=event`);
    await page.getByText('No issue matches').waitFor();
    await leave(page);
  });

  it('resolves an issue by hand, and names the user of money that waits', async () => {
    await deliver(house, 'stripe', 'payment_intent.succeeded', 'evt_24', { isBad: true });
    await deliver(house, 'stripe', 'payment_intent.succeeded', 'evt_23', { user: '' });
    await processEvents(house);
    const page = await house.signIn('/issues?state=open&kind=event');
    await page.getByRole('link', { name: 'payment_intent.succeeded' }).click();
    await page.getByRole('button', { name: 'Resolve…' }).click();
    await page.getByLabel('Reason', { exact: true }).fill('not our currency');
    await page.getByRole('button', { name: 'Yes, resolve' }).click();
    await page.getByText('1 resolved.').waitFor();
    await page.locator('.chip', { hasText: 'resolved' }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Resolve…' }).count(), 0);
    await page.goto(`${house.url}/webhooks`);
    await page
      .getByRole('row', { name: /pi_23 stripe 4900/ })
      .getByRole('button')
      .click();
    await assertAccessible(page);
    await page.getByRole('textbox', { name: 'User' }).fill('zoe');
    await page.getByLabel('Reason', { exact: true }).fill('asked the buyer');
    await page.getByRole('button', { name: 'Name the user', exact: true }).click();
    await page.getByText('The payment is that of zoe').waitFor();
    await page.getByRole('heading', { name: 'Money without a user' }).waitFor({ state: 'detached' });
    const credits = await onLedger(house, (db2) =>
      db2.query(`select amount::int from public.credit_ledger where user_id = 'zoe'`),
    );
    assert.deepEqual(credits.rows, [{ amount: 4900 }]);
    await leave(page);
  });

  it('adds an endpoint, refuses a secret in place of its name, and takes the provider’s events', async () => {
    const page = await house.signIn('/webhooks');
    await page.getByRole('button', { name: 'New endpoint' }).click();
    await page.getByLabel('Name', { exact: true }).fill('stripe-two');
    await page.getByLabel('Name of the secret').fill('whsec_the_secret_itself');
    await page.getByLabel('Takes effect').selectOption('inline');
    await page.getByLabel('Events').selectOption('both');
    await page.getByLabel('Share a tenant').fill('stripe');
    await page.getByLabel('Reason').fill('a second account');
    await page.getByRole('button', { name: 'Add endpoint' }).click();
    assert.equal(await page.getByText('stripe-two is on').count(), 0, 'a secret is not sent as a name');
    await page.getByLabel('Name of the secret').fill('STRIPE_WEBHOOK_SECRET');
    await page.getByRole('button', { name: 'Add endpoint' }).click();
    await page.getByText('stripe-two is on').waitFor();
    await page.getByRole('row', { name: /stripe-two .*stripe.*live and test events/ }).waitFor();
    await deliver(house, 'stripe', 'payment_intent.succeeded', 'evt_9', { endpoint: 'stripe-two' });
    const stored = await onLedger(house, (db2) =>
      db2.query(
        `select e.mode, e.tenant, e.livemode, e.secret_names, a.actor, a.reason from public.webhook_endpoints e
         join audit.audit_logs a on a.subject like '%stripe-two%' where e.name = 'stripe-two'`,
      ),
    );
    assert.deepEqual(stored.rows, [
      {
        mode: 'inline',
        tenant: 'stripe',
        livemode: 'both',
        secret_names: ['STRIPE_WEBHOOK_SECRET'],
        actor: 'admin',
        reason: 'a second account',
      },
    ]);
    await page.getByRole('button', { name: 'New endpoint' }).click();
    await page.getByLabel('Provider').selectOption('hmac');
    await page.getByLabel('Header of the signature').waitFor();
    // Twilio signs the address: without it every delivery from outside would be refused.
    await page.getByLabel('Provider').selectOption('twilio');
    assert(await page.getByLabel('Public address').evaluate((field) => field.matches(':required')));
    await leave(page);
  });

  it('switches an endpoint off, and its provider is refused', async () => {
    const page = await house.signIn('/webhooks');
    await page
      .getByRole('row', { name: /^stripe active/ })
      .getByRole('button', { name: 'Switch off…' })
      .click();
    await page.getByLabel('Reason').fill('a leaked secret');
    await page.getByRole('button', { name: 'Switch off', exact: true }).click();
    await page.getByText('stripe is off.').waitFor();
    await page.getByRole('button', { name: 'Switch on…' }).waitFor();
    const isRefused = () =>
      deliver(house, 'stripe', 'payment_intent.succeeded', 'evt_8').then(
        () => false,
        () => true,
      );
    for (const patience = Date.now() + 10_000; !(await isRefused()); ) assert(Date.now() < patience);
    await leave(page);
  });

  it('reaches the content with the first key, past all the links', async () => {
    const page = await house.signIn('/pools');
    await heading(page, 'Pools');
    await page.keyboard.press('Tab');
    const skipLink = page.getByRole('link', { name: 'Skip to content' });
    assert(
      await skipLink.evaluate((link) => link.getBoundingClientRect().top >= 0),
      'it shows when it has the focus',
    );
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate('document.activeElement.textContent.trim()'), 'New pool');
    await leave(page);
  });

  it('creates a pool, throttles it and closes it, and the door follows', async () => {
    const page = await house.signIn('/pools');
    await page.getByRole('button', { name: 'New pool' }).click();
    await page.getByLabel('Name').fill('spring_sale');
    await page.getByLabel('Slots', { exact: true }).fill('25');
    await page.getByLabel('Slots per user').fill('1');
    await page.getByRole('button', { name: 'Create pool' }).click();
    await heading(page, 'spring_sale');
    await page.getByText('25 left').waitFor();
    assert.equal((await claim(house.url, 'spring_sale', { user_id: 'eve' })).status, 201);
    await page.getByText('24 left').waitFor();
    await page.getByLabel('Throttle, tickets per second').fill('50');
    await page.getByRole('button', { name: 'Save rules' }).click();
    await page.getByText('The rules are saved.').waitFor();
    // It stops a sale: one press is not enough, nor is one without a reason.
    await page.getByRole('button', { name: 'Close pool…' }).click();
    await page.getByRole('button', { name: 'Yes, close pool' }).click();
    assert.equal((await claim(house.url, 'spring_sale', { user_id: 'ann' })).status, 201);
    await page.getByLabel('Reason', { exact: true }).fill('the hall is closed');
    await page.getByRole('button', { name: 'Yes, close pool' }).click();
    await page.getByRole('button', { name: 'Open pool…' }).waitFor();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    assert.equal((await claim(house.url, 'spring_sale', { user_id: 'bob' })).json.error.code, 'closed');
    const { rows } = await house.db1.query(
      `select c.commit_rate_per_sec, c.max_per_user,
         array(select l.actor || ': ' || coalesce(l.reason, '') from audit.audit_logs l
               where l.subject = 'pool spring_sale' order by l.id) as audit
       from public.engine_config c where c.pool_id = 'spring_sale'`,
    );
    assert.deepEqual(rows, [
      {
        commit_rate_per_sec: 50,
        max_per_user: 1,
        audit: ['admin: ', 'admin: ', 'admin: the hall is closed'],
      },
    ]);
    await leave(page);
  });

  it('puts many slots on sale in steps, sees how far it is, and none is there twice when an answer is lost', async () => {
    const page = await house.signIn('/pools');
    let isLost = false;
    const done: string[] = [];
    await page.route('**/admin/pools/arena', async (route) => {
      const request = route.request();
      if (request.method() !== 'POST' || isLost) return route.continue();
      done.push(await page.locator('.progress').innerText());
      isLost = true;
      await route.fetch();
      return route.abort('connectionreset');
    });
    await page.getByRole('button', { name: 'New pool' }).click();
    await page.getByLabel('Name').fill('arena');
    await page.getByLabel('Slots', { exact: true }).fill('60000');
    await page.getByRole('button', { name: 'Create pool' }).click();
    await heading(page, 'arena');
    await page.getByText('60,000 left').waitFor();
    assert(isLost);
    assert.match(done.join(), /50,000 of 60,000/);
    const { rows } = await house.db1.query(
      `select t.slots::int as capacity, c.is_active from intake.pool_totals t join public.engine_config c using (pool_id)
       where pool_id = 'arena'`,
    );
    assert.deepEqual(rows, [{ capacity: 60_000, is_active: true }]);
    await leave(page);
  });

  it('sees why a pool is refused, and keeps what was typed', async () => {
    await putOnSale(house.db1, 'taken', 1);
    const page = await house.signIn('/pools');
    await page.getByRole('button', { name: 'New pool' }).click();
    await page.getByLabel('Name').fill('taken');
    await page.getByRole('button', { name: 'Create pool' }).click();
    await page.getByRole('alert').getByText('There is a pool of this name.').waitFor();
    assert.equal(await page.getByLabel('Name').inputValue(), 'taken');
    await leave(page);
  });
});
