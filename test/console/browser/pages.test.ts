import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { assertAccessible, assertFits, hold } from '../browser_drop/support.ts';
import { ensureChromium } from '../chromium.ts';
import { seedDeliveries } from './deliveries.ts';
import { seed } from './seed.ts';
import { DESKTOP, type House, isForDocuments, openHouse, PHONE, picture, weigh } from './support.ts';

const chromium = await ensureChromium();
const skip = 'missing' in chromium && chromium.missing;
/** As narrow as tables get before they become cards. */
const NARROW_DESKTOP = { width: 1130, height: 860 };
const MAX_PAGE_BYTES = 300_000;
/** Of those below; others have theirs with traffic, or with workers. */
const PICTURED: ReadonlySet<string> = new Set(['pools', 'event']);
const PATIENCE_MS = 15_000;
/** The picture is of jobs that have all run, and one of them runs every two minutes. */
const JOBS_MS = isForDocuments ? 150_000 : 0;
/** The slower end of 3G. */
const SLOW = { offline: false, latency: 400, downloadThroughput: 50_000, uploadThroughput: 20_000 };

/** Each page by name: its path, or the link in a list that leads there, and what it shows when it is all there. */
const PAGES: Readonly<Record<string, readonly [string, string, string?]>> = {
  front: ['/', 'taken in all'],
  history: ['/history?range=15m', 'What happened'],
  'history-of-a-pool': ['/history?range=1h&of=pool+early_bird', 'Slots left'],
  pools: ['/pools', 'early_bird'],
  'pool-rules': ['/pools/early_bird', 'Commits by'],
  claims: ['/claims?pool_id=members', 'user 0'],
  issues: ['/issues', 'status #'],
  issue: ['/issues?kind=claim', 'Times opened', 'max_retries'],
  'dead-letters': ['/dead-letters', 'status 500'],
  'dead-letters-of-webhooks': ['/dead-letters?kind=webhooks', 'charge.refunded'],
  'dead-letter': ['/dead-letters/1', 'Payload'],
  webhooks: ['/webhooks', 'stripe-test-mode'],
  events: ['/events', 'SM9f0c4a7711'],
  event: ['/events?status=dead_letter', 'Raw body', 'evt_1QhZ4aB1'],
  calls: ['/calls', 'other-site'],
  call: ['/calls?event_id=call-4712', 'Signature hash', '-7'],
  tickets: ['/tickets?pool_id=early_bird', 'early_bird'],
  payments: ['/payments', 'by tenant and id'],
  credits: ['/credits', 'Rows are added and never changed'],
  user: ['/users/ann', 'Balance'],
  search: ['/search?q=members', 'What all databases know'],
  audit: ['/audit', 'hook host allow'],
  health: ['/health', 'DB2 ledger'],
};

describe('each page of the console', { skip }, () => {
  let house: House;
  before(async () => {
    house = await openHouse('path' in chromium ? chromium.path : '');
    await seed(house);
    await seedDeliveries(house);
  });
  after(() => house?.close());

  const open = async (page: Page, [path, text, link]: (typeof PAGES)[string]): Promise<void> => {
    await page.goto(house.url + path);
    if (link !== undefined) await page.locator('.row-link', { hasText: link }).first().click();
    await page.getByText(text).first().waitFor();
  };

  for (const [scheme, options] of Object.entries({
    light: { colorScheme: 'light' },
    dark: { colorScheme: 'dark', viewport: PHONE },
  } as const)) {
    it(`has nothing that axe objects to, in ${scheme}, nor what the policy of the page refuses`, async () => {
      const page = await house.signIn('/', options);
      const complaints: string[] = [];
      page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
      page.on('pageerror', (error) => complaints.push(error.message));
      for (const [name, place] of Object.entries(PAGES)) {
        await open(page, place);
        await assertAccessible(page);
        await assertFits(page);
        if (scheme === 'dark') continue;
        if (PICTURED.has(name)) await picture(page, name);
        await page.setViewportSize(NARROW_DESKTOP);
        await assertFits(page);
        await page.setViewportSize(DESKTOP);
      }
      await page.goto(`${house.url}/pools`);
      await page.getByRole('button', { name: 'New pool' }).click();
      await assertAccessible(page);
      await assertFits(page);
      await page.goto(`${house.url}/webhooks`);
      await page.getByRole('button', { name: 'New endpoint' }).click();
      await assertAccessible(page);
      await assertFits(page);
      assert.deepEqual(complaints, []);
      await page.context().close();
    });
  }

  it('of the health shows who is at work: bridge workers, webhook workers and the scheduler', async () => {
    const page = await house.signIn('/health');
    const part = (name: string) =>
      page.locator('.part', { has: page.getByRole('heading', { name, exact: true }) });
    await part('Webhook workers').getByText('none is connected').waitFor();
    await part('Bridge workers')
      .getByText(/\d+ connections?/)
      .waitFor();
    const leave = house.startWorkers();
    try {
      for (const patience = Date.now() + PATIENCE_MS; ; ) {
        await page.getByRole('button', { name: 'Check again' }).click();
        await page.waitForTimeout(100);
        const texts = await Promise.all(
          ['Webhook workers', 'Scheduler'].map((name) => part(name).innerText()),
        );
        if (texts.every((text) => /\d+ connections?/.test(text))) break;
        assert(Date.now() < patience, texts.join());
      }
      const unseen = page.getByText('has not run yet', { exact: true });
      for (const patience = Date.now() + JOBS_MS; Date.now() < patience && (await unseen.count()) > 0; ) {
        await page.waitForTimeout(1_000);
        await page.getByRole('button', { name: 'Check again' }).click();
      }
      await picture(page, 'health');
    } finally {
      await leave();
    }
    await page.context().close();
  });

  it('would not pass with a button that has no name, which is how we know that axe looks', async () => {
    const page = await house.signIn('/health');
    await page.getByText('DB2 ledger').waitFor();
    await page.evaluate('document.querySelector("main").append(document.createElement("button"))');
    await assert.rejects(assertAccessible(page), /button-name/);
    await page.context().close();
  });

  it('is below 300 KB on the wire in all, also with a first visit', async () => {
    const page = await house.signIn('/health');
    const weight = await weigh(page);
    for (const [name, place] of Object.entries(PAGES)) {
      weight.reset();
      await open(page, place);
      assert(weight.bytes() > 10_000, 'nothing was counted');
      assert(weight.bytes() < MAX_PAGE_BYTES, `${name} took ${weight.bytes()} bytes:\n${weight.parts()}`);
    }
    await page.context().close();
  });

  it('can be used over a slow line: it says that it loads, then shows it', async () => {
    const page = await (await house.visit({ viewport: PHONE })).newPage();
    const cdp = await page.context().newCDPSession(page);
    await cdp.send('Network.emulateNetworkConditions', SLOW);
    await page.goto(house.url);
    await page.getByLabel('Your key').fill('test-admin-key-of-the-house');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Menu' }).click();
    const showPools = await hold(page, '**/admin/pools**');
    await page.getByRole('link', { name: 'Pools' }).click();
    await page.getByText('Loading').waitFor({ state: 'attached' });
    showPools();
    await page.getByRole('link', { name: 'early_bird' }).click();
    await page.getByText('Commits by').waitFor();
    await page.context().close();
  });
});
