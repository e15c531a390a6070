// What the server refuses or fails to do: the page says so, and the next press does what it says.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { ADMIN_KEY, ask, bearer, putOnSale } from '../../server/support.ts';
import { paymentEvent, send } from '../../webhook/world.ts';
import { claimMany } from '../../work/support.ts';
import { ensureChromium } from '../chromium.ts';
import { addEndpoint, deliver, onLedger, processEvents } from './deliveries.ts';
import { type House, openHouse } from './support.ts';

const chromium = await ensureChromium();
const skip = 'missing' in chromium && chromium.missing;
const TOMORROW = new Date(Date.now() + 86_400_000).toISOString().slice(0, 19);
const A_PAGE_OF_CLAIMS = 50;

describe('what is refused or fails', { skip }, () => {
  let house: House;
  before(async () => {
    house = await openHouse('path' in chromium ? chromium.path : '');
  });
  after(() => house?.close());
  const leave = (page: Page) => page.context().close();

  const rulesOf = async (pool: string) => {
    const { rows } = await house.db1.query(
      `select c.is_active, c.max_per_user, c.opens_at > now() as opens_later, t.slots::int as slots
       from public.engine_config c join intake.pool_totals t using (pool_id) where pool_id = $1`,
      [pool],
    );
    return rows[0];
  };

  it('is put right before the second press: a large pool opens under the rules of that one', async () => {
    const page = await house.signIn('/pools');
    await page.route('**/admin/pools/arena', (route) => route.fulfill({ status: 500, body: '' }));
    await page.getByRole('button', { name: 'New pool' }).click();
    await page.getByLabel('Name').fill('arena');
    await page.getByLabel('Slots', { exact: true }).fill('60000');
    await page.getByRole('button', { name: 'Create pool' }).click();
    await page.getByRole('alert').getByText('status 500').waitFor();
    await page.unroute('**/admin/pools/arena');
    await page.getByLabel('Opens').fill(TOMORROW);
    await page.getByRole('button', { name: 'Create pool' }).click();
    await page.getByRole('heading', { level: 1, name: 'arena' }).waitFor();
    assert.deepEqual(await rulesOf('arena'), {
      is_active: true,
      max_per_user: null,
      opens_later: true,
      slots: 60_000,
    });
    await leave(page);
  });

  it('may have been done all the same: then the rules of the second press hold for what is there', async () => {
    const page = await house.signIn('/pools');
    await page.route('**/admin/pools', async (route) => {
      if (route.request().method() !== 'POST') return route.continue();
      await route.fetch();
      return route.fulfill({ status: 500, body: '' });
    });
    await page.getByRole('button', { name: 'New pool' }).click();
    await page.getByLabel('Name').fill('chamber');
    await page.getByLabel('Slots', { exact: true }).fill('10');
    await page.getByRole('button', { name: 'Create pool' }).click();
    await page.getByRole('alert').getByText('status 500').waitFor();
    await page.unroute('**/admin/pools');
    await page.getByLabel('Slots per user').fill('2');
    await page.getByRole('button', { name: 'Create pool' }).click();
    await page.getByRole('heading', { level: 1, name: 'chamber' }).waitFor();
    assert.deepEqual(await rulesOf('chamber'), {
      is_active: true,
      max_per_user: 2,
      opens_later: null,
      slots: 10,
    });
    await leave(page);
  });

  it('does not look like a success: a letter that stays keeps the dialog, the page and no check mark', async () => {
    await putOnSale(house.db1, 'sold_elsewhere', 1);
    const { rows } = await house.db1.query(
      `select pgmq.send('intake_dlq', jsonb_build_object('pool_id', 'sold_elsewhere', 'user_id', 'ann',
         'resource_id', s.id, 'claim_id', gen_random_uuid(), 'reason', 'ticket_conflict: sold to bob', 'final_read_ct', 1)) as id
       from public.inventory_slots s where s.pool_id = 'sold_elsewhere'`,
    );
    const page = await house.signIn(`/dead-letters/${rows[0].id}`);
    await page.getByRole('button', { name: 'Discard…' }).click();
    await page.getByLabel('Reason', { exact: true }).fill('a test order');
    await page.getByRole('button', { name: 'Yes, discard' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Not done.').waitFor();
    await dialog.getByText('1 ticket conflict').waitFor();
    assert.equal(new URL(page.url()).pathname, `/dead-letters/${rows[0].id}`);
    await page.locator('.toast-bad', { hasText: '1 ticket conflict.' }).waitFor();
    await dialog.getByRole('button', { name: 'Close' }).last().click();
    // What is done leads to the list, as ever.
    await page.getByRole('button', { name: 'Replay…' }).click();
    await page.getByLabel('Reason', { exact: true }).fill('the slot is free');
    await page.getByRole('button', { name: 'Yes, replay' }).click();
    await page.locator('.toast', { hasText: '1 replayed.' }).waitFor();
    assert.equal(await page.locator('.toast-bad').count(), 0);
    await page.getByRole('heading', { level: 1, name: 'Dead letters' }).waitFor();
    await leave(page);
  });

  it('does not look like a success: of two events one is replayed, and the other has nothing to process', async () => {
    await addEndpoint(house, 'stripe', 'stripe');
    await deliver(house, 'stripe', 'charge.refunded', 'evt_bad', { isBad: true });
    const answer = await send({
      url: `${house.url}/webhooks/stripe`,
      provider: 'stripe',
      body: paymentEvent('evt_nul', { description: 'a\u0000b' }),
    });
    assert.equal(answer.status, 200, answer.text);
    await processEvents(house);
    const page = await house.signIn('/dead-letters?kind=webhooks');
    await page.getByLabel('Select event evt_nul').check();
    await page.getByText('1 selected', { exact: true }).waitFor();
    await page.getByLabel('Select event evt_bad').check();
    await page.getByRole('button', { name: 'Replay…' }).click();
    await page.getByLabel('Reason', { exact: true }).fill('try again');
    await page.getByRole('button', { name: 'Yes, replay' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Not all is done.').waitFor();
    await dialog.getByText('1 replayed').waitFor();
    await dialog.getByText('1 quarantined').waitFor();
    await page.locator('.toast-bad').waitFor();
    await leave(page);
  });

  it('was quarantined: its page says so above its bytes, and offers no replay', async () => {
    const page = await house.signIn('/events?event_id=evt_nul');
    await page.getByRole('link', { name: 'evt_nul' }).click();
    await page
      .getByText('None: the event was quarantined when it came, and only its bytes are kept.')
      .waitFor();
    await page.locator('.timeline').getByText('quarantine: ').waitFor();
    await page.getByLabel('Raw body').getByText('evt_nul').waitFor();
    await page.getByRole('button', { name: 'Skip…' }).waitFor();
    assert.equal(await page.getByText('Pruned.').count(), 0);
    assert.equal(await page.getByRole('button', { name: 'Replay…' }).count(), 0);
    await leave(page);
  });

  it('was quarantined: its issue advises to skip it, and blames no handler', async () => {
    const { json } = await ask(`${house.url}/admin/issues?kind=event`, { headers: bearer(ADMIN_KEY) });
    const issue = json.issues.find(({ error }: { error: string }) => error.startsWith('quarantine: '));
    const page = await house.signIn(`/issues/${issue.id}`);
    await page.getByText('handle it by hand, then skip it').waitFor();
    await page
      .getByRole('heading', { level: 1, name: 'payment_intent.succeeded cannot be processed' })
      .waitFor();
    await page.getByRole('button', { name: 'Resolve…' }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Replay…' }).count(), 0);
    assert.equal(await page.getByText('Mend it').count(), 0);
    await leave(page);
  });

  it('names no handler as the cause where workers died with it', async () => {
    await deliver(house, 'stripe', 'charge.refunded', 'evt_lost', { isBad: true });
    await onLedger(house, (db2) =>
      db2.query(
        `update public.webhook_events set status = 'dead_letter', error = 'lease_lost_repeatedly' where event_id = 'evt_lost'`,
      ),
    );
    const { json } = await ask(`${house.url}/admin/issues?kind=event`, { headers: bearer(ADMIN_KEY) });
    const issue = json.issues.find(({ error }: { error: string }) => error === 'lease_lost_repeatedly');
    const page = await house.signIn(`/issues/${issue.id}`);
    await page.getByText('Read the logs of workers and databases before you replay').waitFor();
    assert.equal(await page.getByText('Mend it').count(), 0);
    await leave(page);
  });

  it('was skipped: it can be replayed where an operator skipped it or it has no handler, and nowhere else', async () => {
    await deliver(house, 'stripe', 'customer.created', 'evt_unhandled');
    await deliver(house, 'stripe', 'payment_intent.succeeded', 'evt_paid');
    await processEvents(house);
    const page = await house.signIn('/events?event_id=evt_paid');
    const replay = page.getByRole('button', { name: 'Replay…' });
    await page.getByRole('link', { name: 'evt_paid' }).click();
    await page.locator('.page-title').getByText('success').waitFor();
    assert.equal(await replay.count(), 0);
    await page.goto(`${house.url}/events?event_id=evt_unhandled`);
    await page.getByRole('link', { name: 'evt_unhandled' }).click();
    await replay.waitFor();
    await page.goto(`${house.url}/events?event_id=evt_bad`);
    await page.getByRole('link', { name: 'evt_bad' }).click();
    await page.getByRole('button', { name: 'Skip…' }).click();
    await page.getByLabel('Reason', { exact: true }).fill('of a test account');
    await page.getByRole('button', { name: 'Yes, skip' }).click();
    await page.getByText('skipped by admin').waitFor();
    await replay.click();
    await page.getByLabel('Reason', { exact: true }).fill('it was none');
    await page.getByRole('button', { name: 'Yes, replay' }).click();
    await page.getByText('1 replayed.').waitFor();
    await leave(page);
  });

  it('is said where it failed and for as long as it is true, when a list cannot be continued', async () => {
    await putOnSale(house.db1, 'long_list', 100);
    await claimMany(house.db1, 'long_list', A_PAGE_OF_CLAIMS + 5);
    const page = await house.signIn('/claims?pool_id=long_list');
    const more = page.getByRole('link', { name: 'Next' });
    await page.route('**/admin/claims?*after=*', (route) => route.fulfill({ status: 503, body: '' }));
    await more.click();
    const trouble = page.getByRole('alert');
    await trouble.getByText('status 503').waitFor();
    assert.match(await trouble.innerText(), /by itself/);
    // Another search is another list.
    await page.getByLabel('State').selectOption('committed');
    await page.getByRole('button', { name: 'Search' }).click();
    await trouble.waitFor({ state: 'detached' });
    await page.goBack();
    await trouble.waitFor();
    await page.unroute('**/admin/claims?*after=*');
    await trouble.waitFor({ state: 'detached' });
    assert.equal(await page.getByRole('row').count(), 1 + 5);
    // The number alone leads there too.
    await page.goto(`${house.url}/claims?pool_id=long_list&page=2`);
    await page.getByRole('row').nth(5).waitFor();
    assert.equal(await page.getByRole('row').count(), 1 + 5);
    await leave(page);
  });

  it('is told where a user is not erased yet: what it waits for, one round a press, and none after Cancel', async () => {
    const page = await house.signIn('/users/ann');
    let rounds = 0;
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    let hold = () => {};
    const held = new Promise<void>((resolve) => {
      hold = resolve;
    });
    await page.route('**/admin/users/erase', async (route) => {
      rounds++;
      if (rounds === 3) {
        hold();
        await released;
      }
      const waits_for = rounds === 1 ? 'messages of the user that are moving' : null;
      await route.fulfill({
        status: 202,
        json: { status: 'working', replacement: null, changed: {}, waits_for },
      });
    });
    await page.getByRole('button', { name: 'Erase…' }).click();
    await page.getByLabel('Type the name of the user').fill('ann');
    await page.getByLabel('Reason', { exact: true }).fill('asked for');
    await page.getByRole('button', { name: 'Yes, erase for good' }).click();
    await page.getByRole('status').getByText('messages of the user that are moving').waitFor();
    assert.equal(rounds, 1);
    // Out of time alone: it goes on by itself, until the dialog is left.
    await page.getByRole('button', { name: 'Go on' }).click();
    await held;
    await page.getByRole('button', { name: 'Cancel' }).click();
    release();
    await page.getByText('This user is not erased yet.').waitFor();
    assert.equal(rounds, 3);
    await leave(page);
  });
});
