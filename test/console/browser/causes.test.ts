// Three planted outages. From the overview, by links alone, an operator comes to a page that names the cause and what to do; when it is
// mended, the overview says so by itself.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { putOnSale } from '../../server/support.ts';
import { SECRET_NAMES } from '../../webhook/world.ts';
import { assertAccessible, assertFits } from '../browser_drop/support.ts';
import { ensureChromium } from '../chromium.ts';
import {
  EVENTS,
  HANDLER,
  POOL,
  plantCertificate,
  plantHandlerBug,
  plantLostSecret,
  restartServer,
} from './plant.ts';
import { type House, openHouse, picture } from './support.ts';

const chromium = await ensureChromium();
const skip = 'missing' in chromium && chromium.missing;
/** The workers' own look at what was mended, with the longest pause of a breaker. */
const MENDED_MS = 40_000;

async function replay(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Replay…' }).click();
  await page.getByLabel('Reason', { exact: true }).fill('the handler is mended');
  await page.getByRole('button', { name: 'Yes, replay' }).click();
}

describe('the cause of an outage', { skip }, () => {
  let house: House;
  before(async () => {
    house = await openHouse('path' in chromium ? chromium.path : '');
    await putOnSale(house.db1, 'healthy', 10, { validation_webhook_url: house.validation.url });
  });
  after(() => house?.close());

  const alarm = (page: Page, text: string) => page.locator('.alarm', { hasText: text });
  const fault = (page: Page) => page.locator('main').getByRole('alert');
  const menu = (page: Page, name: string) =>
    page.getByRole('navigation').getByRole('link', { name, exact: true }).click();

  it('is not looked for where nothing is wrong', async () => {
    const page = await house.signIn('/');
    await page.getByText('taken in all').first().waitFor();
    await page.getByText('live', { exact: true }).waitFor();
    assert.deepEqual(await page.locator('.alarm').allInnerTexts(), []);
    assert.equal(await page.getByRole('heading', { name: 'Open issues' }).count(), 0);
    await page.context().close();
  });

  it('is a certificate: the overview names the hook and why, and its pool what to do', async (t) => {
    const planted = await plantCertificate(house);
    t.after(planted.end);
    const page = await house.signIn('/');
    const line = alarm(page, 'certificate');
    await line.waitFor();
    assert.match(await line.innerText(), /^A hook at 127\.0\.0\.1:\d+ cannot be used: .*certificate/);
    await page.getByRole('status').getByText('Something that workers need cannot be used.').waitFor();
    await assertAccessible(page);
    await assertFits(page);
    await picture(page, 'hook');
    await line.getByRole('link', { name: POOL }).click();
    await fault(page).getByText('Renew it at that host.').waitFor();
    await fault(page).getByText('It may be the address that this pool calls, or another one').waitFor();
    await assertAccessible(page);
    // A pool beside it has no part in it.
    await menu(page, 'Pools');
    await page.getByRole('link', { name: 'healthy' }).click();
    await page.getByText('Commits by').waitFor();
    assert.equal(await fault(page).count(), 0);
    // History remembers the cause as well.
    await menu(page, 'History');
    await page.getByText(/was left alone after failures: .*certificate/).waitFor();

    await menu(page, 'Pools');
    await page.getByRole('link', { name: POOL }).click();
    await page.getByLabel('Validation hook').fill(house.validation.url);
    await page.getByRole('button', { name: 'Save rules' }).click();
    await page.getByText('The rules are saved.').waitFor();
    await menu(page, 'Overview');
    await line.waitFor({ state: 'detached', timeout: MENDED_MS });
    await page.getByText('nothing waits').first().waitFor({ timeout: MENDED_MS });
    await page.context().close();
  });

  it('is a bug of a handler: the overview names the handler, and its issue the error and what to do', async (t) => {
    const planted = await plantHandlerBug(house);
    t.after(planted.end);
    const page = await house.signIn('/');
    const line = alarm(page, `The handler ${HANDLER} fails event after event.`);
    await line.waitFor();
    // The menu counts it, and the overview has it among the open issues.
    await page.locator('.places a[href="/issues"] .badge').waitFor();
    const issues = page.locator('.card', { has: page.getByRole('heading', { name: 'Open issues' }) });
    await issues.getByText(`handler ${HANDLER}`).waitFor();
    await assertAccessible(page);
    await line.getByRole('link', { name: 'What it says' }).click();
    await page.getByRole('link', { name: 'customer.created' }).click();
    await page
      .getByText("TypeError: Cannot read properties of undefined (reading 'email')")
      .first()
      .waitFor();
    await page.getByText(`The handler ${HANDLER} says this`).waitFor();
    await assertAccessible(page);
    await picture(page, 'issue');

    const late = await house.signIn(new URL(page.url()).pathname);
    await planted.halt();
    await replay(page);
    await page.getByText(`${EVENTS} replayed`).first().waitFor();
    planted.mend();
    await menu(page, 'Overview');
    await line.waitFor({ state: 'detached', timeout: MENDED_MS });
    await issues.waitFor({ state: 'detached', timeout: MENDED_MS });
    // A page that was opened before all was well.
    await replay(late);
    await late.getByText('Nothing is left to do.').first().waitFor();
    await late.context().close();
    await page.context().close();
  });

  it('is a secret that was lost: the overview names endpoint and secret, and its page where the server looks', async () => {
    await plantLostSecret(house);
    const page = await house.signIn('/');
    const line = alarm(page, 'Deliveries to the endpoint phones are refused');
    await line.waitFor();
    assert.match(await line.innerText(), /TWILIO_AUTH_TOKEN is not set/);
    await line.getByRole('link', { name: 'What to do about it' }).click();
    await fault(page).getByText('TWILIO_AUTH_TOKEN is not set.').waitFor();
    await fault(page).getByText('SLUICE_SECRETS_FILE').waitFor();
    await assertAccessible(page);

    await restartServer(house, () => house.lostSecrets.delete(SECRET_NAMES.twilio ?? ''));
    await menu(page, 'Overview');
    await line.waitFor({ state: 'detached', timeout: MENDED_MS });
    await page.context().close();
  });
});
