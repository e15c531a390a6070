// Three planted outages. From the overview, by links alone, an operator comes to a page that names the cause and what to do; when it is
// mended, the overview says so by itself.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { putOnSale } from '../../server/support.ts';
import { SECRET_NAMES } from '../../webhook/world.ts';
import { assertAccessible, assertFits } from '../browser_drop/support.ts';
import { ensureChromium } from '../chromium.ts';
import { onLedger } from './deliveries.ts';
import {
  EVENTS,
  HANDLER,
  POOL,
  plantCertificate,
  plantHandlerBug,
  plantLostSecret,
  restartServer,
} from './plant.ts';
import { DESKTOP, type House, openHouse, picture } from './support.ts';

const chromium = await ensureChromium();
const skip = 'missing' in chromium && chromium.missing;
/** The workers' own look at what was mended, with the longest pause of a breaker. */
const MENDED_MS = 40_000;
const NARROW = { width: 390, height: 740 };

async function replay(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Replay…' }).click();
  await page.getByLabel('Reason', { exact: true }).fill('the handler is mended');
  await page.getByRole('button', { name: 'Yes, replay' }).click();
}

const caution = `${HANDLER} failed at its last try: what you replay fails again until it is mended.`;

/** Another event of the handler, which failed in another way. */
const addFault = (house: House) =>
  onLedger(house, (db2) =>
    db2.query(
      `insert into public.webhook_events (webhook_id, provider, event_id, event_type, status, error, payload)
       select webhook_id, provider, 'evt_other', event_type, 'dead_letter', 'another fault', '{}'
       from public.webhook_events where event_id = 'evt_1QhZ9wM1'`,
    ),
  );
const endFault = (house: House) =>
  onLedger(house, (db2) =>
    db2.query(`update public.webhook_events set status = 'skipped' where event_id = 'evt_other'`),
  );

/** Those two events of the handler have failed so often; their ids. */
const withAttempts = (house: House, ...attempts: readonly [number, number]): Promise<string[]> =>
  onLedger(house, (db2) =>
    Promise.all(
      attempts.map(async (many, index) => {
        const { rows } = await db2.query(
          `update public.webhook_events set status = 'failed', attempts = $1, next_attempt_at = now() where event_id = $2 returning id`,
          [many, `evt_1QhZ9wM${index + 1}`],
        );
        return String(rows[0].id);
      }),
    ),
  );

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
    assert.match(await line.innerText(), /each try counts: after as many as its endpoint allows/);
    // Of two issues it leads to their list, of one to its page.
    const says = (href: string) => line.locator(`a[href^="${href}"]`, { hasText: 'What it says' });
    await addFault(house);
    await says('/issues?state=open&lane=').waitFor();
    await endFault(house);
    await says('/issues/').click();
    const title = `${HANDLER} fails on customer.created`;
    await page.getByRole('heading', { level: 1, name: title }).waitFor();
    assert.equal(await page.title(), `${title} · Sluice`);
    await page
      .getByText("TypeError: Cannot read properties of undefined (reading 'email')")
      .first()
      .waitFor();
    await page.getByText(`The handler ${HANDLER} says this`).waitFor();
    await assertAccessible(page);
    await picture(page, 'issue');
    const issuePath = new URL(page.url()).pathname;
    await page.getByRole('link', { name: 'What happened at that time' }).click();
    await page.getByText(new RegExp(`handler ${HANDLER} was left alone`)).waitFor();
    await page.goBack();

    // A replay would fail again, and the plan leads to what it would replay.
    await page.getByRole('button', { name: 'Replay…' }).click();
    await page.getByRole('dialog').getByText(caution).waitFor();
    await page.getByRole('button', { name: 'Dry run' }).click();
    const planned = page.getByRole('dialog').locator('a[href^="/events/"]');
    await planned.first().waitFor();
    await assertAccessible(page);
    await page.setViewportSize(NARROW);
    await assertFits(page);
    await page.setViewportSize(DESKTOP);
    await planned.first().focus();
    await page.keyboard.press('Enter');
    await page.getByText(/tried \d times? of 5/).waitFor();
    await page.locator('.facts').getByText(HANDLER, { exact: true }).waitFor();
    assert.match(await page.title(), /^customer\.created evt_1QhZ9wM\d · Sluice$/);
    await page.getByRole('button', { name: 'Replay…' }).click();
    await page.getByRole('dialog').getByText(caution).waitFor();

    const late = await house.signIn(issuePath);
    await planted.halt();
    const [last, other] = await withAttempts(house, 4, 3);
    await page.goto(`${house.url}/events/${last}`);
    await page.getByText('tried 4 times of 5').waitFor();
    await page.getByText('The next failure makes it a dead letter.').waitFor();
    await assertAccessible(page);
    await page.goto(`${house.url}/events/${other}`);
    await page.getByText('tried 3 times of 5').waitFor();
    assert.equal(await page.getByText('makes it a dead letter').count(), 0);
    await page.goto(house.url + issuePath);
    await replay(page);
    await page.getByText(`${EVENTS} replayed`).first().waitFor();
    await page.locator('.chip', { hasText: 'resolved' }).waitFor();
    await page.getByRole('heading', { name: 'Example' }).waitFor();
    planted.mend();
    await menu(page, 'Overview');
    await line.waitFor({ state: 'detached', timeout: MENDED_MS });
    await issues.waitFor({ state: 'detached', timeout: MENDED_MS });
    // A page that was opened before all was well.
    await late.getByRole('button', { name: 'Replay…' }).click();
    await late.getByText('All that failed alike goes round again').waitFor();
    assert.equal(await late.getByText(caution).count(), 0);
    await late.keyboard.press('Escape');
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
