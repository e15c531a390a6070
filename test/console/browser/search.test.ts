// Findable: every id that a page shows is found by the box, lists keep their place, and a claim is acted on where it is.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { seatName } from '#core/tickets/words.ts';
import { assertAccessible, assertFits } from '../browser_drop/support.ts';
import { ensureChromium } from '../chromium.ts';
import { CLAIMS, EveryPlace } from './every_place.ts';
import { picture } from './support.ts';

const chromium = await ensureChromium();
const skip = 'missing' in chromium && chromium.missing;
const PHONE = { width: 390, height: 800 };
/** As much of a uuid as a narrow column shows: the time, the pool, and enough of chance. */
const SHOWN = 23;
/** Ids of all kinds, users and pools. */
const IDS = 'main .id, main a .given, main td[data-label="Pool"] .given';
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** What looks like an id of ours or of Stripe, or like the number of a dead letter, whatever element it stands in. */
const LOOKS_LIKE_AN_ID =
  /^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:stripe\/)?(?:pi|cs|ch|re|evt|txn)_\w{4,}|#\d+)$/;
/** Each word of the page on its own; not what a caller sent, which may hold ids of others. */
const WORDS = `(() => {
  const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  const words = [];
  while (walker.nextNode())
    if (!walker.currentNode.parentElement.closest('.code, .digest'))
      words.push(...walker.currentNode.data.split(/[\\s,]+/));
  return words;
})()`;

describe('everything is findable in the console', { skip }, () => {
  let every: EveryPlace;
  before(async () => {
    every = await EveryPlace.open('path' in chromium ? chromium.path : '');
  });
  after(() => every?.close());

  const box = (page: Page) => page.getByRole('combobox', { name: 'Search everything' });

  /** How many the box finds by this text, as it is typed or pasted. */
  async function found(page: Page, text: string): Promise<number> {
    await box(page).fill('');
    const answered = page.waitForResponse((response) => response.url().includes('/admin/search?'));
    await box(page).fill(text);
    assert.equal((await answered).status(), 200, text);
    await page.locator('.search-found .found-foot', { hasText: /Nothing found|results?\./ }).waitFor();
    return page.getByRole('option').count();
  }

  it('by every id that any page shows, pasted into the box', async () => {
    const page = await every.signIn('/claims');
    const shown = new Map<string, string>();
    for (const place of Object.values(await every.places()).flat()) {
      await every.show(page, place);
      const [path] = place;
      const texts = await page.locator(IDS).allTextContents();
      for (const id of await page.locator('main .id-short').allTextContents())
        if (UUID.test(id)) shown.set(`${id.slice(0, SHOWN)}…`, path);
      const words = (await page.evaluate(WORDS)) as string[];
      for (const one of [...texts, ...words.filter((word) => LOOKS_LIKE_AN_ID.test(word))])
        shown.set(one.trim(), path);
    }
    assert(shown.size > 40, `only ${shown.size} were shown`);
    const lost: string[] = [];
    for (const [id, path] of shown) if ((await found(page, id)) === 0) lost.push(`${id} of ${path}`);
    assert.deepEqual(lost, []);
    // The control: a tail is not shown by any page of the console, and not found.
    assert.equal(await found(page, every.order.order_id.slice(-12)), 0);
    await page.context().close();
  });

  it('an issue by its lane, and Enter opens it', async () => {
    const page = await every.signIn('/');
    const { rows } = await every.world.db1.query(`select id from public.issue_list(p_lane => 'members')`);
    assert((await found(page, 'issue members')) > 0);
    await page
      .getByRole('option', { name: /members/ })
      .first()
      .click();
    await page.waitForURL(`**/issues/${rows[0].id}`);
    await page.getByText('Times opened').waitFor();
    await page.context().close();
  });

  it('by the number of a seat, as its ticket shows it to a buyer', async () => {
    const page = await every.signIn('/');
    const [claimId] = every.order.claims;
    const { rows } = await every.world.db1.query('select slot_id from public.claims where claim_id = $1', [
      claimId,
    ]);
    assert.equal(await found(page, seatName(null, rows[0].slot_id)), 1);
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/claims/${claimId}`);
    await page.context().close();
  });

  it('by the keyboard alone: slash, arrows, Enter; and Escape leaves', async () => {
    const page = await every.signIn('/health');
    await page.getByText('DB2 ledger').waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('pi_3QhZ4aB1');
    await page.getByRole('option').first().waitFor();
    assert.equal(await box(page).getAttribute('aria-expanded'), 'true');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    const chosen = page.getByRole('option', { selected: true });
    assert.equal(await box(page).getAttribute('aria-activedescendant'), await chosen.getAttribute('id'));
    const name = await chosen.locator('.id').innerText();
    await page.keyboard.press('Enter');
    await page.getByText('What moved it').waitFor();
    assert.equal(new URL(page.url()).pathname, `/payments/${encodeURIComponent(name)}`);
    await page.keyboard.press('/');
    await page.keyboard.type('ann');
    await page.getByRole('option').first().waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('option').first().waitFor({ state: 'hidden' });
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Search', exact: true }).waitFor();
    assert.equal(new URL(page.url()).search, '?q=ann');
    // Where a person types, a slash is a slash.
    await page.goto(`${every.world.server.url}/claims`);
    await page.getByLabel('Request id').fill('a');
    await page.getByLabel('Request id').press('/');
    assert.equal(await page.getByLabel('Request id').inputValue(), 'a/');
    await page.context().close();
  });

  it('and a list has its total, numbers for its pages, an export, and is where it was after "back"', async () => {
    const page = await every.signIn('/claims?pool_id=many');
    await page.getByText(`${CLAIMS} in all`).waitFor();
    await page.getByRole('link', { name: 'Next' }).click();
    await page.locator('.pager-here', { hasText: '2' }).waitFor();
    await page.getByRole('link', { name: 'Next' }).click();
    await page.locator('.pager-here', { hasText: '3' }).waitFor();
    const rows = () => page.locator('.row-link').allTextContents();
    const third = await rows();
    const address = page.url();
    await page.locator('.row-link').nth(30).scrollIntoViewIfNeeded();
    const y = await page.evaluate('scrollY');
    assert(Number(y) > 100);
    await page.locator('.row-link').nth(30).click();
    await page.getByRole('heading', { name: 'Claim', exact: true }).waitFor();
    assert.equal(await page.evaluate('scrollY'), 0);
    await page.goBack();
    await page.locator('.row-link').nth(30).waitFor();
    await page.waitForFunction(`Math.abs(scrollY - ${y}) < 5`);
    assert.equal(page.url(), address);
    assert.deepEqual(await rows(), third);
    // By the number alone, and from the field.
    await page.goto(`${every.world.server.url}/claims?pool_id=many&page=3`);
    await page.locator('.row-link').nth(30).waitFor();
    assert.deepEqual(await rows(), third);
    await page.getByLabel('Page', { exact: true }).fill('4');
    await page.getByRole('button', { name: 'Go', exact: true }).click();
    await page.locator('.pager-here', { hasText: '4' }).waitFor();
    assert.equal((await rows()).length, CLAIMS - 150);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'CSV' }).click(),
    ]);
    assert.match(download.suggestedFilename(), /^sluice-claims-.*\.csv$/);
    await page.context().close();
  });

  it('a dead-lettered claim is tried without a reason, replayed on its own page, and shows its audit row', async () => {
    const { rows } = await every.world.db1.query('select claim_id from public.claims where msg_id = $1', [
      every.letters[1],
    ]);
    const page = await every.signIn(`/claims/${rows[0].claim_id}`);
    await page.getByRole('button', { name: 'Replay…' }).click();
    await page.getByRole('button', { name: 'Dry run' }).click();
    await page.getByText('1 would replay').waitFor();
    await page.getByRole('button', { name: 'Yes, replay' }).click();
    // It needs a reason: the browser says so, and nothing was sent.
    assert.equal(await page.getByRole('dialog').count(), 1);
    await page.getByLabel('Reason', { exact: true }).fill('the hook is repaired');
    await page.getByRole('button', { name: 'Yes, replay' }).click();
    await page.getByText('1 replayed.').waitFor();
    await page.locator('.step-head', { hasText: /replayed by an operator/i }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Replay…' }).count(), 0);
    await page.getByRole('link', { name: 'Audit row' }).click();
    await page.getByRole('cell', { name: 'the hook is repaired' }).waitFor();
    assert.equal(await page.locator('tbody tr').count(), 1);
    await page.context().close();
  });

  it('a claim that waits is released, and a ticket voided with a plan first, each on its own page', async () => {
    const { rows } = await every.world.db1.query(
      `select claim_id from public.claims where pool_id = 'many' order by claim_id limit 1`,
    );
    const page = await every.signIn(`/claims/${rows[0].claim_id}`);
    await page.getByRole('button', { name: 'Release…' }).click();
    // The server cannot say beforehand what a worker will have done by then.
    assert.equal(await page.getByRole('button', { name: 'Dry run' }).count(), 0);
    await page.getByLabel('Reason', { exact: true }).fill('asked by telephone');
    await page.getByRole('button', { name: 'Yes, release' }).click();
    await page.getByText('1 released.').waitFor();
    await page.getByRole('button', { name: 'Release…' }).waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'Audit row' }).click();
    await page.getByRole('row', { name: /admin claim release .* asked by telephone/ }).waitFor();

    const ticket = every.order.claims[0] ?? '';
    await page.goto(`${every.world.server.url}/tickets/${ticket}`);
    await page.getByRole('button', { name: 'Void…' }).click();
    await page.getByRole('button', { name: 'Dry run' }).click();
    await page.getByText('1 would void').waitFor();
    const refunds = async (claim: string) =>
      (await every.world.db2.query(`select from public.refunds_due where id like '%' || $1 || '%'`, [claim]))
        .rowCount;
    await page.getByLabel('Pay back what they cost').uncheck();
    await page.getByLabel('Reason', { exact: true }).fill('a broken chair');
    await page.getByRole('button', { name: 'Yes, void' }).click();
    await page.getByText('1 void requested.').waitFor();
    await page.getByRole('link', { name: 'Audit row' }).click();
    await page.getByRole('row', { name: /admin ticket void .* a broken chair/ }).waitFor();
    await every.world.carry();
    await page.goto(`${every.world.server.url}/tickets/${ticket}`);
    await page.locator('.page-title .chip', { hasText: 'void' }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Void…' }).count(), 0);
    assert.equal(await refunds(ticket), 0, 'the money stays');
    // The control: the other seat was voided with its refund.
    assert.equal(await refunds(every.order.claims[1] ?? ''), 1);
    await page.context().close();
  });

  it('a delivery of the inbox is replayed where it is shown, and the alarm leads there', async () => {
    const page = await every.signIn('/');
    await page.getByText('The ledger refused').getByRole('link', { name: 'Look at them' }).click();
    await page.getByRole('link', { name: 'hotel' }).waitFor();
    await page.getByRole('checkbox', { name: /^Select delivery/ }).check();
    await page.getByRole('button', { name: 'Replay…' }).click();
    await page.getByLabel('Reason', { exact: true }).fill('the ledger is mended');
    await page.getByRole('button', { name: 'Yes, replay' }).click();
    await page.getByText('1 replayed.').waitFor();
    await page.getByText('No dead letters', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Audit row' }).click();
    await page.getByRole('row', { name: /admin inbox replay .* the ledger is mended/ }).waitFor();
    await page.context().close();
  });

  it('times say their zone, and one switch turns all of them', async () => {
    const page = await every.signIn(`/claims/${every.order.claims[0]}`, { timezoneId: 'America/New_York' });
    const zones = async () => new Set(await page.locator('time .zone').allTextContents());
    await page.locator('time .zone').first().waitFor();
    assert.match([...(await zones())].join(), /^(GMT-[45]|E[SD]T)$/);
    const at = page.locator('.step time').first();
    const local = await at.innerText();
    await page.getByRole('button', { name: /Times in UTC/ }).click();
    assert.deepEqual(await zones(), new Set(['UTC']));
    assert.notEqual(await at.innerText(), local);
    await page.goto(`${every.world.server.url}/claims`);
    await page.locator('time .zone').first().waitFor();
    assert.deepEqual(await zones(), new Set(['UTC']));
    // Fields take what they say.
    await page.goto(`${every.world.server.url}/history?range=15m`);
    await page.getByRole('heading', { name: 'What happened' }).waitFor();
    await page.getByLabel('From, UTC').fill('2026-03-01T10:00:00');
    await page.getByLabel('To, UTC').fill('2026-03-01T11:00:00');
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await page.waitForURL(/from=2026-03-01T10%3A00%3A00.000Z&to=2026-03-01T11%3A00%3A00.000Z/);
    await page.getByText('Nothing was sampled in this time').waitFor();
    assert.match(await page.getByLabel('From, UTC').inputValue(), /^2026-03-01T10:00/);
    await page.getByRole('button', { name: /Times in UTC/ }).click();
    assert.match(await page.getByLabel('From, your time').inputValue(), /^2026-03-01T05:00/);
    await page.context().close();
  });

  for (const [scheme, options] of Object.entries({
    light: { colorScheme: 'light' },
    dark: { colorScheme: 'dark', viewport: PHONE },
  } as const))
    it(`shows what it found so that axe has nothing against it and it fits, in ${scheme}`, async () => {
      const page = await every.signIn('/claims', options);
      await found(page, 'ann');
      await assertAccessible(page);
      await assertFits(page);
      if (scheme === 'light') await picture(page, 'search');
      await page.context().close();
    });

  it('a viewer sees a user, and is not offered to export or erase one; an admin is', async () => {
    const page = await every.signIn('/users/ann', {}, every.viewerKey);
    await page.getByRole('heading', { name: 'Balance' }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Erase…' }).count(), 0);
    assert.equal(await page.getByRole('button', { name: 'Export…' }).count(), 0);
    await page.context().close();
    const admin = await every.signIn('/users/ann');
    await admin.getByRole('button', { name: 'Export…' }).click();
    const [download] = await Promise.all([
      admin.waitForEvent('download'),
      admin.getByRole('button', { name: 'Export', exact: true }).click(),
    ]);
    assert.equal(download.suggestedFilename(), 'sluice-user.json');
    await admin.getByText('user export').first().waitFor();
    await admin.getByRole('button', { name: 'Erase…' }).click();
    await admin.getByLabel('Type the name of the user').fill('bob');
    await admin.getByLabel('Reason', { exact: true }).fill('asked for');
    await admin.getByRole('button', { name: 'Yes, erase for good' }).click();
    await admin.getByText('is not the name of this user').waitFor();
    await admin.getByLabel('Type the name of the user').fill('ann');
    await admin.getByRole('button', { name: 'Yes, erase for good' }).click();
    await admin.getByText(/stands in the place of the name/).waitFor();
    assert.match(new URL(admin.url()).pathname, /^\/users\/erased/);
    await admin.context().close();
  });
});
