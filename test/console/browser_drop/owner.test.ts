import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { bearer, putOnSale, token } from '../../server/support.ts';
import { ensureChromium } from '../chromium.ts';
import { assertAccessible, assertFits, hold, openShop, type Shop, scene } from './support.ts';

const chromium = await ensureChromium();
const skip = 'missing' in chromium && chromium.missing;
const BUTTON = 'button.big';

describe('a claim of the drop page', { skip }, () => {
  let shop: Shop;
  before(async () => {
    shop = await openShop('path' in chromium ? chromium.path : '');
  });
  after(() => shop?.close());

  const open = async (pool: string): Promise<Page> => {
    const page = await (await shop.visit()).newPage();
    await page.goto(`${shop.url}/drop/${pool}`);
    return page;
  };

  it('is read and given back by the browser that made it, also after a reload, and by no stranger who knows its id', async () => {
    await putOnSale(shop.db1, 'own', 5);
    const page = await open('own');
    const addresses: string[] = [];
    page.on('request', (request) => addresses.push(request.url()));
    await page.click(BUTTON);
    await scene(page, 'held');
    await page.reload();
    await scene(page, 'held');
    const [claim] = await shop.claims('own');
    assert(claim !== undefined);
    const place = `${shop.url}/v1/claims/${claim.claim_id}`;
    const eve = bearer(await token({ role: 'authenticated', sub: 'eve' }));
    for (const headers of [{}, { 'x-claim-secret': 'a guess of the stranger' }, eve])
      for (const method of ['GET', 'DELETE'])
        assert.equal((await fetch(place, { method, headers })).status, 404, method);
    assert.equal((await shop.claims('own'))[0]?.state, 'queued');

    await page.reload();
    await scene(page, 'held');
    await assertAccessible(page);
    await assertFits(page);
    // First the person thinks twice.
    page.once('dialog', (dialog) => void dialog.dismiss());
    await page.getByText('Give this seat back').click();
    assert.equal((await shop.claims('own'))[0]?.state, 'queued');
    page.once('dialog', (dialog) => void dialog.accept());
    await page.getByText('Give this seat back').click();
    await scene(page, 'ended');
    await assertAccessible(page);
    assert.equal((await shop.claims('own'))[0]?.state, 'released');

    const secret = (await page.evaluate(
      `JSON.parse(localStorage.getItem('sluice.drop.own')).secret`,
    )) as string;
    assert.match(secret, /^[0-9a-f]{32,200}$/);
    assert.deepEqual(
      addresses.filter((address) => address.includes(secret)),
      [],
      'no address holds the secret',
    );
    await page.click(BUTTON);
    await scene(page, 'held');
    assert.equal((await shop.claims('own')).length, 2);
    assert.notEqual(
      await page.evaluate(`JSON.parse(localStorage.getItem('sluice.drop.own')).secret`),
      secret,
      'the next request has a secret of its own',
    );
    await page.context().close();
  });

  it('says that it could not be given back, and stays', async () => {
    await putOnSale(shop.db1, 'stays', 5);
    const page = await open('stays');
    await page.click(BUTTON);
    await scene(page, 'held');
    page.on('dialog', (dialog) => void dialog.accept());
    for (const [answer, words] of [
      [{ status: 502, body: 'bad gateway' }, 'the seat may still be yours'],
      [{ status: 409, json: { error: { code: 'already_committed' } } }, 'cannot be given back any more'],
    ] as const) {
      await page.route('**/v1/claims/*', (route) =>
        route.request().method() === 'DELETE' ? route.fulfill(answer) : route.continue(),
      );
      await page.getByText('Give this seat back').click();
      await page.getByText(words).waitFor();
      await page.unroute('**/v1/claims/*');
    }
    await assertAccessible(page);
    await scene(page, 'held');
    await page.context().close();
  });
});

describe('a pool with a challenge', { skip }, () => {
  let shop: Shop;
  before(async () => {
    shop = await openShop('path' in chromium ? chromium.path : '');
  });
  after(() => shop?.close());

  const open = async (pool: string): Promise<Page> => {
    const page = await (await shop.visit()).newPage();
    await page.goto(`${shop.url}/drop/${pool}`);
    await scene(page, 'open');
    return page;
  };

  it('lets the device solve it, says so, shows how far it is, and sells the seat', async () => {
    await putOnSale(shop.db1, 'puzzle', 5, { challenge_difficulty: 200_000 });
    const page = await open('puzzle');
    await page.evaluate(`{
      globalThis.shares = [];
      new MutationObserver(() => {
        const share = document.querySelector('progress')?.value;
        if (share !== undefined && share !== shares.at(-1)) shares.push(share);
      }).observe(document.body, { subtree: true, childList: true, attributes: true });
    }`);
    const giveChallenge = await hold(page, '**/v1/pools/puzzle/challenge');
    await page.click(BUTTON);
    await page.getByText('Your device solves a small puzzle').waitFor();
    await page.getByRole('progressbar', { name: 'Puzzle' }).waitFor();
    await assertAccessible(page);
    await assertFits(page);
    giveChallenge();
    await scene(page, 'held');
    const shares = (await page.evaluate('shares')) as number[];
    assert.equal(shares[0], 0);
    assert.deepEqual(
      shares,
      shares.toSorted((a, b) => a - b),
    );
    assert.equal((await shop.claims('puzzle')).length, 1);
    await page.reload();
    await scene(page, 'held');
    await page.context().close();
  });

  it('solves another one where the first was used or came too late, and gives up after three', async () => {
    await putOnSale(shop.db1, 'again', 5, { challenge_difficulty: 1_000 });
    const page = await open('again');
    let given = 0;
    page.on('request', (request) => {
      if (request.url().endsWith('/challenge')) given++;
    });
    let refusals = 0;
    await page.route('**/v1/pools/again/claims', (route) =>
      refusals-- > 0
        ? route.fulfill({ status: 409, json: { error: { code: 'challenge_used' } } })
        : route.continue(),
    );
    refusals = 100;
    await page.click(BUTTON);
    await page.getByText('did not succeed').waitFor();
    assert.equal(given, 3);
    await assertAccessible(page);
    refusals = 1;
    await page.click(BUTTON);
    await scene(page, 'held');
    assert.equal((await shop.claims('again')).length, 1);
    await page.context().close();
  });

  it('says plainly that it cannot solve one of another kind', async () => {
    await putOnSale(shop.db1, 'foreign', 5, { challenge_difficulty: 1_000 });
    const page = await open('foreign');
    await page.route('**/v1/pools/foreign/challenge', (route) =>
      route.fulfill({ json: { turnstile: { sitekey: 'x' } } }),
    );
    await page.click(BUTTON);
    await page.getByText('that this page cannot do').waitFor();
    await assertAccessible(page);
    assert.deepEqual(await shop.claims('foreign'), []);
    await page.context().close();
  });

  it('says what the limit of an address is', async () => {
    await putOnSale(shop.db1, 'shared_wifi', 5);
    const page = await open('shared_wifi');
    await page.route('**/v1/pools/shared_wifi/claims', (route) =>
      route.fulfill({ status: 409, json: { error: { code: 'address_limit' } } }),
    );
    await page.click(BUTTON);
    await page.getByText('Buyers on your network already hold as many seats').waitFor();
    await page.context().close();
  });
});
