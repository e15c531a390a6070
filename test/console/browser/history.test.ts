import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { openClient } from '../../server/support.ts';
import { assertAccessible, assertFits } from '../browser_drop/support.ts';
import { ensureChromium } from '../chromium.ts';
import { shaded } from './charts.ts';
import { seed, startTraffic } from './seed.ts';
import { type House, openHouse, picture } from './support.ts';

const chromium = await ensureChromium();
const skip = 'missing' in chromium && chromium.missing;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const PHONE = { width: 390, height: 844 };

/** What the page shows of a time: its charts with their numbers, and what happened. */
async function shown(page: Page): Promise<{ charts: string[]; marks: string[] }> {
  await page.getByRole('heading', { name: 'What happened' }).waitFor();
  const charts = page.locator('.chart');
  return {
    charts: await charts.evaluateAll((all) => all.map((one) => one.getAttribute('aria-label') ?? '')),
    marks: await page.locator('.marks li').allInnerTexts(),
  };
}

describe('what the console remembers', { skip }, () => {
  let house: House;
  /** The clock of samples is so far ahead of ours. */
  let aheadMs = 0;
  const now = (): number => Date.now() + aheadMs;
  before(async () => {
    house = await openHouse('path' in chromium ? chromium.path : '', { sampleClock: now });
  });
  after(() => house?.close());

  const outages = async (): Promise<{ began: Date; ended: Date | null }[]> =>
    (
      await house.db1.query(
        `select began_at as began, ended_at as ended from audit.marks where kind = 'outage' and subject = 'DB2' order by began_at`,
      )
    ).rows;

  /** An hour of samples in both databases, taken by the function that servers call, by a clock that is moved. */
  async function passAnHour(): Promise<void> {
    const from = now() + 4_000;
    aheadMs += HOUR_MS;
    const db2 = await openClient(house.db2Url);
    try {
      // A minute each: the server's own sample waits for the transaction, and two that wait too long are an outage.
      for (const db of [house.db1, db2])
        for (let at = from; at < from + HOUR_MS; at += MINUTE_MS)
          await db.query(
            `select count(public.take_sample('[]', t)) from generate_series($1::timestamptz, $2::timestamptz, interval '2 seconds') t`,
            [new Date(at), new Date(at + MINUTE_MS - 2_000)],
          );
      // A busy machine answers late twice in a row: a true outage of the intake, and not the one that this is about.
      for (const db of [house.db1, db2])
        await db.query(`delete from audit.marks where kind = 'outage' and subject = 'DB1'`);
    } finally {
      await db2.end();
    }
  }

  it('shows an outage of the ledger that came with no page open, an hour of samples later, the same to all', async () => {
    await seed(house);
    const stopTraffic = startTraffic(house, 'concert_2026', 60);
    const samples = async () =>
      (await house.db1.query('select count(*)::int from audit.samples')).rows[0].count;
    while ((await samples()) < 3) await new Promise((resolve) => setTimeout(resolve, 200));
    // No page is open.
    await house.stopLedger();
    while ((await outages()).length === 0) await new Promise((resolve) => setTimeout(resolve, 200));
    aheadMs += MINUTE_MS;
    await house.startLedger();
    while ((await outages())[0]?.ended === null) await new Promise((resolve) => setTimeout(resolve, 200));
    await stopTraffic();
    const [outage, ...others] = await outages();
    assert(outage?.ended);
    const lastedMs = outage.ended.getTime() - outage.began.getTime();
    assert.deepEqual(others, []);
    assert(lastedMs >= MINUTE_MS && lastedMs < 2 * MINUTE_MS, `${lastedMs} ms`);
    await passAnHour();

    const page = await house.signIn('/');
    await page.getByRole('link', { name: 'History', exact: true }).click();
    await page.getByRole('link', { name: '24 h', exact: true }).click();
    await page.waitForURL(/\/history\?range=24h$/);
    const first = await shown(page);
    const text = first.marks.find((mark) => mark.includes('DB2 did not answer'));
    assert.match(text ?? '', /outage\s+DB2 did not answer for 1 min/);
    const ofLedger = first.charts.filter((label) => label.endsWith(', one outage'));
    assert.equal(ofLedger.length, 8, first.charts.join('\n'));
    assert(
      (await shaded(page, 'Ledger commits per second')) > 100,
      'the outage is on the chart of the ledger',
    );
    assert.equal(await shaded(page, 'Queue depth'), 0, 'and not on one of the intake');
    await assertAccessible(page);
    await assertFits(page);
    await picture(page, 'history');

    await page.reload();
    assert.deepEqual((await shown(page)).marks, first.marks, 'after a reload');
    const link = page.url();
    const other = await house.signIn(link.slice(house.url.length), { colorScheme: 'dark' });
    assert.deepEqual((await shown(other)).marks, first.marks, 'in a second browser, by a link');
    assert((await shaded(other, 'Ledger commits per second')) > 100);
    await assertAccessible(other);
    await picture(other, 'history-dark');
    await other.context().close();

    // The mark leads to its own time, which is known by the minute now, and can be linked.
    await page.locator('.marks li', { hasText: 'DB2 did not answer' }).getByRole('link').click();
    await page.waitForURL(/from=.*to=/);
    const near = await shown(page);
    assert(near.marks.some((mark) => mark.includes('DB2 did not answer')));
    assert((await shaded(page, 'Ledger commits per second')) > 1_000);
    assert.match(near.charts.join(), /Queue depth: .* to .*/);
    await picture(page, 'history-near');
    const third = await house.signIn(page.url().slice(house.url.length));
    assert.deepEqual(await shown(third), near, 'the same time again: the same numbers');
    await third.context().close();

    const phone = await house.signIn(link.slice(house.url.length), { viewport: PHONE });
    assert.deepEqual((await shown(phone)).marks, first.marks);
    await assertFits(phone);
    await assertAccessible(phone);
    await picture(phone, 'history-phone');
    await phone.context().close();

    await page.goto(`${house.url}/history?range=15m`);
    const quiet = await shown(page);
    assert(
      !quiet.marks.some((mark) => mark.includes('DB2 did not answer')),
      'the last quarter of an hour had none',
    );
    assert.equal(await shaded(page, 'Ledger commits per second'), 0);
    await page.context().close();
  });

  it('shows one pool, and a time of one’s own, by the keyboard', async () => {
    const page = await house.signIn('/pools/concert_2026');
    await page.getByRole('main').getByRole('link', { name: 'History', exact: true }).focus();
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/history\?range=24h&of=pool\+concert_2026$/);
    await page.getByRole('heading', { name: 'Slots left' }).waitFor();
    await page.getByLabel('Of').selectOption('');
    await page.getByRole('heading', { name: 'Oldest hold' }).waitFor();
    await page.getByLabel('From, your time').fill('2026-03-01T10:00:00');
    await page.getByLabel('To, your time').fill('2026-03-01T11:00:00');
    await page.keyboard.press('Enter');
    await page.getByText('Nothing was sampled in this time').waitFor();
    assert.match(page.url(), /from=2026-03-01T1/);
    await page.goBack();
    await page.getByRole('heading', { name: 'Oldest hold' }).waitFor();
    await page.context().close();
  });
});
