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
const NARROW = { width: 390, height: 800 };

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

/** The events of the handler have failed so often, also one that a worker handed back when it was halted; their ids. */
const withAttempts = (house: House, ...attempts: readonly number[]): Promise<string[]> =>
  onLedger(house, (db2) =>
    Promise.all(
      attempts.map(async (many, index) => {
        const { rows } = await db2.query(
          `update public.webhook_events e set status = 'failed', attempts = $1, next_attempt_at = now(),
             error = coalesce(e.error, (select max(o.error) from public.webhook_events o where o.event_id like 'evt_1QhZ9wM%'))
           where e.event_id = $2 returning e.id`,
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
    page
      .getByRole('navigation')
      .getByRole('link', { name: new RegExp(`^${name}`) })
      .click();
  /** The menu's number of what cannot be used. */
  const badge = (page: Page) => page.getByRole('link', { name: 'Overview 1 in trouble' });
  const status = (page: Page) => page.locator('.alarms').getByRole('status');
  const checked = (page: Page) =>
    page.locator('.part', { has: page.getByRole('heading', { name: 'Hooks, handlers and secrets' }) });

  it('is not looked for where nothing is wrong', async () => {
    const page = await house.signIn('/');
    await page.getByText('taken in all').first().waitFor();
    await page.getByText('live', { exact: true }).waitFor();
    assert.deepEqual(await page.locator('.alarm').allInnerTexts(), []);
    assert.equal(await page.getByRole('heading', { name: 'Open issues' }).count(), 0);
    assert.equal(await page.locator('.badge-trouble').count(), 0);
    assert.equal(await status(page).textContent(), '');
    await menu(page, 'Health');
    await checked(page).getByText('all can be used').waitFor();
    await menu(page, 'Events');
    await page.getByText('No event yet').waitFor();
    await page.getByText('The server keeps nothing of a delivery that it refuses').waitFor();
    await page.context().close();
  });

  it('is a certificate: the overview names the hook, why and what to do, and its pool which hook it is', async (t) => {
    const planted = await plantCertificate(house);
    t.after(planted.end);
    const page = await house.signIn('/');
    const line = alarm(page, 'certificate');
    await line.waitFor();
    assert.match(await line.innerText(), /^A hook at 127\.0\.0\.1:\d+ cannot be used: .*certificate/);
    assert.match(await line.innerText(), /\. Since \d\d:\d\d:\d\d .*Renew it at that host\./);
    await line.getByText(`${POOL} (25 claims waiting)`).waitFor();
    await status(page)
      .getByText(/^A hook at 127\.0\.0\.1:\d+ cannot be used\.$/)
      .waitFor();
    await assertAccessible(page);
    await assertFits(page);
    await picture(page, 'hook');
    await line.getByRole('link', { name: POOL }).click();
    await fault(page).getByText('Renew it at that host.').waitFor();
    await fault(page).getByText('Now: 25 claims waiting.').waitFor();
    const address = await page.getByLabel('Validation hook').inputValue();
    await fault(page).getByText(`The validation hook of this pool is there: ${address}`).waitFor();
    assert.equal(await fault(page).getByText('it may be another one').count(), 0, 'pools call one address');
    await fault(page).getByRole('link', { name: 'Go to this setting' }).click();
    assert.equal(await page.locator('input:focus').getAttribute('name'), 'validation_webhook_url');
    await assertAccessible(page);
    // A second address at that host: from here on it may be either.
    await putOnSale(house.db1, 'matinee', 1, { validation_webhook_url: new URL('/other', address).href });
    await page.reload();
    await fault(page)
      .getByText('Pools call several addresses at that host, and it may be another one.')
      .waitFor();
    await house.db1.query(
      `update public.engine_config set validation_webhook_url = null where pool_id = 'matinee'`,
    );
    // A claim that waits says so on its page.
    await page.goto(`${house.url}/claims?pool_id=${POOL}`);
    await page.locator('.row-link').first().click();
    await fault(page).getByText('Claims of this pool wait until workers can use it again').waitFor();
    const note = page.getByText('Only a delivery that failed is an attempt.');
    for (const end = Date.now() + MENDED_MS; (await note.count()) === 0; await page.waitForTimeout(500)) {
      assert(Date.now() < end, 'workers did not try the hook again');
      await page.getByRole('button', { name: 'Refresh' }).click();
    }
    await assertAccessible(page);
    await fault(page).getByRole('link', { name: 'What to do about it' }).click();
    await page.getByLabel('Dead letter at attempt').waitFor();
    // Health has it in the same words, and every page has its number.
    await menu(page, 'Health');
    await checked(page).getByText(`${POOL} (25 claims waiting)`).waitFor();
    await checked(page).getByText('down', { exact: true }).waitFor();
    await badge(page).waitFor();
    await status(page)
      .getByText(/A hook at .* cannot be used\./)
      .waitFor();
    for (const [viewport, colorScheme] of [
      [DESKTOP, 'dark'],
      [NARROW, 'light'],
      [NARROW, 'dark'],
    ] as const) {
      await page.setViewportSize(viewport);
      await page.emulateMedia({ colorScheme });
      await assertAccessible(page);
      await assertFits(page);
    }
    await page.getByRole('button', { name: 'Menu 1 in trouble' }).click();
    await badge(page).waitFor();
    await page.setViewportSize(DESKTOP);
    await page.emulateMedia({ colorScheme: 'light' });
    // A pool beside it has no part in it.
    await menu(page, 'Pools');
    await page.getByRole('link', { name: 'healthy' }).click();
    await page.getByText('Commits by').waitFor();
    assert.equal(await fault(page).count(), 0);
    // History remembers the cause as well.
    await menu(page, 'History');
    await page.getByText(/was left alone after failures: .*certificate/).waitFor();
    await page.getByText('In the charts each is a dashed line').waitFor();

    await menu(page, 'Pools');
    await page.getByRole('link', { name: POOL }).click();
    await page.getByLabel('Validation hook').fill(house.validation.url);
    await page.getByRole('button', { name: 'Save rules' }).click();
    await page.getByText('The rules are saved.').waitFor();
    await menu(page, 'Overview');
    await page.getByText('A dashed line is something that happened').waitFor();
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
    await badge(page).waitFor();
    await status(page).getByText(`The handler ${HANDLER} fails event after event.`).waitFor();
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
    const [last, other] = await withAttempts(house, 4, 3, 1, 1);
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
    await fault(page).getByText('The person who runs the servers does').waitFor();
    await fault(page).getByText("select vault.create_secret('…', 'TWILIO_AUTH_TOKEN');").waitFor();
    await fault(page).getByText('Twilio tries once more within 15 seconds and then gives up').waitFor();
    await fault(page).getByText('npx sluice webhooks backfill phones --since …').waitFor();
    await page.getByText('cannot be used', { exact: true }).waitFor();
    await badge(page).waitFor();
    // Before what waits on other days, too.
    await house.db1.query(
      `select pgmq.send('intake_dlq', '{"pool_id": "healthy", "user_id": "ann", "reason": "planted", "final_read_ct": 1}')`,
    );
    await status(page)
      .getByText('Deliveries to the endpoint phones are refused. There are dead letters.')
      .waitFor();
    await assertAccessible(page);
    await page.getByRole('button', { name: 'Rotate secret…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('TWILIO_AUTH_TOKEN is not set. Rotating does not mend that').waitFor();
    assert.equal(await dialog.getByText('stay good').count(), 0);
    await page.keyboard.press('Escape');
    await page.setViewportSize(NARROW);
    await assertFits(page);
    await page.setViewportSize(DESKTOP);
    await page.getByRole('link', { name: 'Events' }).last().click();
    await page.getByText('Deliveries that the server refused are not listed.').waitFor();

    await restartServer(house, () => house.lostSecrets.delete(SECRET_NAMES.twilio ?? ''));
    await menu(page, 'Overview');
    await line.waitFor({ state: 'detached', timeout: MENDED_MS });
    await page.context().close();
  });
});
