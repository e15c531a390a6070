import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { openClient } from '../../server/support.ts';
import { ensureChromium } from '../chromium.ts';
import { drawn } from './charts.ts';
import { seed, startTraffic } from './seed.ts';
import { type House, isForDocuments, openHouse, PHONE, picture } from './support.ts';

const chromium = await ensureChromium();
const skip = 'missing' in chromium && chromium.missing;
/** Pictures of charts need something on them. */
const HISTORY_MS = isForDocuments ? 70_000 : 0;
const OUTAGE_MS = isForDocuments ? 20_000 : 0;

/** Well before a page loads its charts anew by itself. */
const SOON_MS = 12_000;
/** The server gives all pages that ask within five seconds the same answer. */
const KEPT_MS = 5_000;
/** Within the last quarter of an hour, and no sample of another test. */
const PAST_MIN = 10;
const MINUTE_MS = 60_000;

/** Minutes of samples of the ledger that end a few minutes ago. */
async function passMinutes(house: House): Promise<void> {
  const db2 = await openClient(house.db2Url);
  try {
    const from = Date.now() - PAST_MIN * MINUTE_MS;
    await db2.query(
      `select count(public.take_sample('[]', t)) from generate_series($1::timestamptz, $2::timestamptz, interval '2 seconds') t`,
      [new Date(from), new Date(from + (PAST_MIN / 2) * MINUTE_MS)],
    );
  } finally {
    await db2.end();
  }
}

describe('an outage', { skip }, () => {
  let house: House;
  before(async () => {
    house = await openHouse('path' in chromium ? chromium.path : '');
  });
  after(() => house?.close());

  it('of the ledger is seen while claims go on, and seen drained once it is over', async () => {
    await seed(house);
    const page = await house.signIn('/');
    const stopTraffic = startTraffic(house, 'concert_2026', 120);
    const depth = page.locator('.station', { hasText: 'Queue' }).locator('.station-value');
    const ledger = page.locator('.station', { hasText: 'Ledger' });
    await ledger.getByText('tickets').waitFor();
    await page.waitForTimeout(HISTORY_MS);
    await picture(page, 'overview');

    await house.stopLedger();
    await page.getByText('The ledger (DB2) does not answer', { exact: true }).waitFor();
    await ledger.getByText('down').waitFor();
    await page.getByText('shut', { exact: true }).waitFor();
    const waiting = async () => Number((await depth.textContent())?.replaceAll(',', ''));
    while ((await waiting()) < 200) await page.waitForTimeout(100);
    await page.waitForTimeout(OUTAGE_MS);
    await picture(page, 'outage');
    // Each page stands, though half of what it shows may be missing.
    await page.getByRole('link', { name: 'Health' }).click();
    await page.getByText('does not answer', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Audit log' }).click();
    await page.getByRole('link', { name: 'Ledger (DB2)' }).click();
    await page.getByText('This page tries again by itself.').waitFor();

    await house.startLedger();
    await page.getByText('Nothing yet').or(page.getByRole('table')).waitFor();
    await stopTraffic();
    await page.getByRole('link', { name: /^Overview/ }).click();
    await page.getByText('The ledger (DB2) does not answer', { exact: true }).waitFor({ state: 'detached' });
    while ((await waiting()) > 0) await page.waitForTimeout(100);
    await page.getByText('the queue is empty').waitFor();
    await picture(page, 'drained');
    const { rows } = await house.db1.query(
      `select count(*)::int as left_over from public.claims where pool_id = 'concert_2026' and state <> 'committed'`,
    );
    assert.deepEqual(rows, [{ left_over: 0 }]);
    const phone = await house.signIn('/', { viewport: PHONE, colorScheme: 'dark' });
    await phone.getByText('nothing waits').first().waitFor();
    await picture(phone, 'phone');
    await phone.context().close();
    await page.context().close();
  });

  it('of the ledger that a page was opened in leaves no hole in its charts once it is over', async () => {
    await passMinutes(house);
    await new Promise((resolve) => setTimeout(resolve, KEPT_MS));
    const before = await house.signIn('/');
    const lines = ['Ledger commits per second', 'Webhook backlog'];
    const drawnIn = (page: Page) => Promise.all(lines.map((title) => drawn(page, title)));
    await before.getByText('nothing waits').first().waitFor();
    const whole = await drawnIn(before);
    assert(
      whole.every((pixels) => pixels > 80),
      `${whole} pixels`,
    );

    await house.stopLedger();
    await before.waitForTimeout(KEPT_MS);
    await before.context().close();
    const page = await house.signIn('/');
    const ended = await house.signIn(
      `/history?from=${new Date(Date.now() - 5 * MINUTE_MS).toISOString()}&to=${new Date().toISOString()}`,
    );
    await page.getByText('The ledger (DB2) does not answer', { exact: true }).waitFor();
    await page.getByRole('heading', { name: 'Webhook backlog' }).waitFor();
    const missing = ended.getByText('DB2 does not answer: what it remembers is missing');
    await missing.waitFor();
    const holed = await drawnIn(page);
    assert(
      holed.every((pixels) => pixels < 20),
      `${holed} pixels`,
    );
    // As workers tell it that have not tried again yet.
    const told = (ended_ms: number | null) =>
      house.db1.query('select public.note_marks($1)', [
        JSON.stringify([{ kind: 'breaker', subject: 'ledger', began_ms: 1_000 * startedSec, ended_ms }]),
      ]);
    const startedSec = Math.floor(Date.now() / 1_000);
    await told(null);

    await house.startLedger();
    const line = page.locator('.alarm', { hasText: 'Workers do not reach the ledger' });
    await line.getByText('The ledger answers this server. Workers try it again within 15 seconds.').waitFor();
    assert.doesNotMatch(await line.innerText(), /address/);
    const until = Date.now() + SOON_MS;
    const isWhole = async () =>
      (await drawnIn(page)).every((pixels, index) => pixels > (whole[index] ?? 0) / 2);
    while (!(await isWhole())) {
      assert(Date.now() < until, `${await drawnIn(page)} of ${whole} pixels`);
      await page.waitForTimeout(200);
    }
    await missing.waitFor({ state: 'detached', timeout: SOON_MS });
    await told(Date.now());
    await line.waitFor({ state: 'detached' });
    await page.context().close();
    await ended.context().close();
  });

  it('of the server is seen, and the page goes on by itself when it is back', async () => {
    const page = await house.signIn('/');
    await page.getByText('live', { exact: true }).waitFor();
    await house.stopServer();
    await page.getByText('The live connection is lost.').last().waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.locator('.toast-bad', { hasText: 'Signing out did not work' }).waitFor();
    await page.getByRole('link', { name: 'Pools' }).click();
    await page.getByText('The server does not answer.', { exact: true }).waitFor();
    await house.startServer();
    await page.getByRole('table').waitFor();
    await page.getByText('live', { exact: true }).waitFor();
    assert.equal(await page.locator('.alarm').count(), 0);
    await page.context().close();
  });
});
