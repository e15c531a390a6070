// An admin manages who delivers and who may act, in the console, as on the command line.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { addOperator } from '../../operators/support.ts';
import { ask, bearer } from '../../server/support.ts';
import { allowSecrets } from '../../webhook/world.ts';
import { assertAccessible, assertFits } from '../browser_drop/support.ts';
import { ensureChromium } from '../chromium.ts';
import { addEndpoint, onLedger } from './deliveries.ts';
import { type House, openHouse, picture } from './support.ts';

const chromium = await ensureChromium();
const skip = 'missing' in chromium && chromium.missing;
const PHONE = { width: 390, height: 800 };
const ADA = 'Ada Lovelace';

describe('an admin in the console', { skip }, () => {
  let house: House;
  let ada: string;
  before(async () => {
    house = await openHouse('path' in chromium ? chromium.path : '');
    ada = await addOperator(house.db1, ADA, 'admin');
    await onLedger(house, (db2) => allowSecrets(db2, ['SITE_SECRET', 'OTHER_SECRET', 'GONE_SECRET']));
    await addEndpoint(house, 'stripe', 'stripe');
  });
  after(() => house?.close());

  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
  const reason = (page: Page) => page.getByLabel('Reason', { exact: true });
  /** Follows the link that an action leaves to its audit row. */
  async function assertWritten(page: Page, row: RegExp): Promise<void> {
    await page.getByRole('link', { name: /^audit row$/i }).click();
    await page.getByRole('row', { name: row }).first().waitFor();
    await page.goBack();
  }
  /** In both schemes, at two widths: what a dialog or page looks like. */
  async function look(page: Page, name: string): Promise<void> {
    await assertAccessible(page);
    await assertFits(page);
    await picture(page, name);
    await page.emulateMedia({ colorScheme: 'dark' });
    await assertAccessible(page);
    await picture(page, `${name}-dark`);
    await page.emulateMedia({ colorScheme: 'light' });
  }

  it('changes the settings of an endpoint: only what was changed is sent, and it is written down', async () => {
    const page = await house.signIn('/webhooks', {}, ada);
    await page.getByRole('link', { name: 'stripe', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'stripe' }).waitFor();
    await page.getByLabel('Deliveries while the ledger is away').selectOption('accept');
    await page.getByLabel('Attempts').fill('9');
    await page.getByLabel('Accounts').fill('acct_1, acct_2');
    await page.getByLabel('Reason for the change').fill('a longer outage');
    await look(page, 'endpoint');
    await button(page, 'Save settings').click();
    await page.getByText('The settings of stripe are saved.').waitFor();
    await assertWritten(page, /Ada Lovelace webhook endpoint change webhook endpoint stripe a longer outage/);
    const { rows } = await onLedger(house, (db2) =>
      db2.query(
        `select details -> 'changes' as changes from audit.audit_logs where action = 'webhook_endpoint_change' order by id desc limit 1`,
      ),
    );
    assert.deepEqual(rows, [
      { changes: { on_outage: 'accept', max_attempts: 9, accounts: ['acct_1', 'acct_2'] } },
    ]);
    await page.getByLabel('Attempts').waitFor();
    assert.equal(await page.getByLabel('Attempts').inputValue(), '9');
    await button(page, 'Save settings').click();
    await page.getByText('No setting was changed.').waitFor();
    await page.context().close();
  });

  it('rotates a secret by its name: both are good, then the old one is ended', async () => {
    const page = await house.signIn('/endpoints/stripe', {}, ada);
    await button(page, 'Rotate secret…').click();
    await page.getByLabel('Name of the new secret').fill('whsec_the_secret_itself');
    await reason(page).fill('it leaked');
    await button(page, 'Rotate').click();
    assert.equal(await page.getByRole('dialog').count(), 1, 'a secret is not sent as a name');
    await page.getByLabel('Name of the new secret').fill('GONE_SECRET');
    await button(page, 'Rotate').click();
    await page.getByRole('alert').getByText('GONE_SECRET is not set.').waitFor();
    await page.getByLabel('Name of the new secret').fill('SITE_SECRET');
    await look(page, 'rotate');
    await button(page, 'Rotate').click();
    await page
      .getByText('SITE_SECRET is the newest secret of stripe; STRIPE_WEBHOOK_SECRET stay good.')
      .waitFor();
    await assertWritten(page, /Ada Lovelace webhook endpoint change webhook endpoint stripe it leaked/);
    await page.getByText('still good').waitFor();
    await button(page, 'Rotate secret…').click();
    await page.getByLabel('Name of the new secret').fill('SITE_SECRET');
    await page.getByLabel(/End the old ones/).check();
    await reason(page).fill('the provider has it');
    await button(page, 'Rotate').click();
    await page.getByText('SITE_SECRET is the only secret of stripe now.').waitFor();
    await page.getByText('still good').waitFor({ state: 'detached' });
    await page.context().close();
  });

  it('sees an endpoint without its secret in red, with what to do', async () => {
    await onLedger(house, (db2) =>
      db2.query(`select webhook.add_endpoint('lost', 'github', '{GONE_SECRET}', p_actor => 'test')`),
    );
    const page = await house.signIn('/endpoints/lost', {}, ada);
    await page.getByRole('alert').getByText('GONE_SECRET is not set.').waitFor();
    await page.getByText(/refused until the server finds it in DB2’s Vault/).waitFor();
    await page.locator('.chip-bad', { hasText: 'no secret' }).waitFor();
    await look(page, 'endpoint-lost');
    await page.context().close();
  });

  it('adds a call site, changes it, rotates its secret, and switches it off and on', async () => {
    const page = await house.signIn('/sites', {}, ada);
    await page.getByText('No call site yet').waitFor();
    await button(page, 'New call site').click();
    await page.getByLabel('Id', { exact: true }).fill('branch-7');
    await page.getByLabel('Name of the secret').fill('SITE_SECRET');
    await page.getByLabel('Kinds').fill('ring, hangup');
    await look(page, 'new-site');
    await button(page, 'Add call site').click();
    await page.getByText('branch-7 may send call events now.').waitFor();
    await page.getByRole('heading', { level: 1, name: 'branch-7' }).waitFor();
    await page.getByLabel('Calls while the ledger is away').selectOption('accept');
    await page.getByLabel('Kinds').fill('');
    await look(page, 'site');
    await button(page, 'Save settings').click();
    await page.getByText('The settings of branch-7 are saved.').waitFor();
    await button(page, 'Rotate secret…').click();
    await page.getByLabel('Name of the new secret').fill('OTHER_SECRET');
    await reason(page).fill('every year');
    await button(page, 'Rotate').click();
    await page.getByText('OTHER_SECRET is the newest secret of branch-7').waitFor();
    await assertWritten(page, /Ada Lovelace call site change call site branch-7 every year/);
    for (const [verb, said] of [
      ['Switch off', 'branch-7 is off.'],
      ['Switch on', 'branch-7 is on.'],
    ] as const) {
      await button(page, `${verb}…`).click();
      await reason(page).fill('moving');
      await button(page, verb).click();
      await page.getByText(said).waitFor();
    }
    const { rows } = await onLedger(house, (db2) =>
      db2.query('select secret_names, kinds, on_outage, is_active from public.call_sites'),
    );
    assert.deepEqual(rows, [
      { secret_names: ['OTHER_SECRET', 'SITE_SECRET'], kinds: null, on_outage: 'accept', is_active: true },
    ]);
    await page.goto(`${house.url}/sites`);
    await page.getByRole('link', { name: 'branch-7' }).waitFor();
    await look(page, 'sites');
    await page.context().close();
  });

  it('adds a person, whose key is shown once and opens the console', async () => {
    const page = await house.signIn('/operators', {}, ada);
    await button(page, 'New operator').click();
    await page.getByLabel('Name', { exact: true }).fill('Zoë 李 Müller');
    await page.getByLabel('Role', { exact: true }).selectOption('viewer');
    await look(page, 'new-operator');
    await button(page, 'Make a key').click();
    const field = page.getByLabel(/It is not shown again/);
    await field.waitFor();
    const key = await field.inputValue();
    assert.match(key, /^slo_[\w-]{43}$/);
    await look(page, 'new-key');
    await button(page, 'I have kept it').click();
    await page.getByRole('row', { name: /Zoë 李 Müller viewer/ }).waitFor();
    assert(!(await page.content()).includes(key));
    await look(page, 'operators');

    const zoe = await (await house.visit({ viewport: PHONE })).newPage();
    await zoe.goto(`${house.url}/operators`);
    await zoe.getByLabel('Your key').fill(key);
    await zoe.keyboard.press('Enter');
    await zoe.getByText('Ada Lovelace').first().waitFor();
    assert.equal(await zoe.getByRole('button', { name: /New operator|New key…|Revoke…/ }).count(), 0);
    for (const [path, text] of [
      ['/endpoints/stripe', 'The endpoint'],
      ['/sites/branch-7', 'The call site'],
    ] as const) {
      await zoe.goto(house.url + path);
      await zoe.getByRole('heading', { name: text }).waitFor();
      assert.equal(await zoe.getByRole('button', { name: /Save|Rotate|Switch/ }).count(), 0);
    }

    await page
      .getByRole('row', { name: /Zoë 李 Müller/ })
      .getByRole('button', { name: 'Revoke…' })
      .click();
    await reason(page).fill('left');
    await button(page, 'Yes, revoke').click();
    await page.getByText('Zoë 李 Müller is not an operator any more.').waitFor();
    await assertWritten(page, /Ada Lovelace operator revoke operator Zoë 李 Müller left/);
    await page.getByRole('row', { name: /Zoë 李 Müller revoked/ }).waitFor();
    await zoe.getByRole('heading', { name: 'Sign in to the console' }).waitFor();
    await zoe.context().close();
    await page.context().close();
  });

  it('makes a new key for herself, sees it though her session ends, and is signed in with it', async () => {
    const page = await house.signIn('/operators', {}, ada);
    await page.getByRole('row', { name: ADA }).getByRole('button', { name: 'New key…' }).click();
    await page.getByText('This is your own key').waitFor();
    await reason(page).fill('every year');
    await button(page, 'Make a new key').click();
    const key = await page.getByLabel(/It is not shown again/).inputValue();
    // The old key has ended: the page below knows it, and the key stays in view.
    const statusWith = async (one: string) =>
      (await ask(`${house.url}/admin/pools`, { headers: bearer(one) })).status;
    while ((await statusWith(ada)) !== 401) await page.waitForTimeout(50);
    await page.getByRole('heading', { name: 'Sign in to the console' }).waitFor();
    assert.equal(await page.getByLabel(/It is not shown again/).inputValue(), key);
    await button(page, 'I have kept it').click();
    await page.locator('.who', { hasText: ADA }).waitFor();
    await page.getByRole('row', { name: ADA }).waitFor();
    assert.equal(await statusWith(key), 200);
    await page.context().close();
  });
});
