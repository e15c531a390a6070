import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { ensureChromium } from '../chromium.ts';
import { seed, startTraffic } from './seed.ts';
import { type House, isForDocuments, openHouse, PHONE, picture } from './support.ts';

const chromium = await ensureChromium();
const skip = 'missing' in chromium && chromium.missing;
/** Pictures of charts need something on them. */
const HISTORY_MS = isForDocuments ? 70_000 : 0;
const OUTAGE_MS = isForDocuments ? 20_000 : 0;

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
