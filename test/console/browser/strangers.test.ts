// What strangers choose, and what operators must not be misled about.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { claim, putOnSale } from '../../server/support.ts';
import { assertAccessible, assertFits } from '../browser_drop/support.ts';
import { ensureChromium } from '../chromium.ts';
import { bury, LETTERS_A_POOL } from './seed.ts';
import { DESKTOP, type House, openHouse, PHONE } from './support.ts';

const chromium = await ensureChromium();
const skip = 'missing' in chromium && chromium.missing;
const LONG_POOL = 'p'.repeat(180);
const LONG_USER = 'u'.repeat(200);

/** No cell, card or heading holds more than it has room for. */
async function assertHolds(page: Page): Promise<void> {
  await assertFits(page);
  const spilt = await page.evaluate(
    `[...document.querySelectorAll('td, .card, h1, .given, .note')]
       .filter((part) => getComputedStyle(part).overflow === 'visible' && part.scrollWidth > part.clientWidth + 1 && part.clientWidth > 0)
       .map((part) => part.className + ' ' + part.scrollWidth + ' in ' + part.clientWidth + ': ' + part.textContent.slice(0, 20))`,
  );
  assert.deepEqual(spilt, []);
}

describe('the console, with names as long as they may be', { skip }, () => {
  let house: House;
  before(async () => {
    house = await openHouse('path' in chromium ? chromium.path : '');
    await putOnSale(house.db1, LONG_POOL, 5);
    const { json } = await claim(house.url, LONG_POOL, { user_id: LONG_USER });
    await house.db1.query(`select pgmq.send('intake_dlq', $1::jsonb)`, [
      JSON.stringify({
        pool_id: LONG_POOL,
        user_id: LONG_USER,
        claim_id: json.claim_id,
        reason: `max_retries: ${'x'.repeat(150)}`,
        final_read_ct: 2,
      }),
    ]);
    await house.db1.query(
      `insert into audit.audit_logs (actor, action, subject, reason) values ($1, 'pool_change', $2, $3)`,
      ['o'.repeat(150), `pool ${LONG_POOL}`, 'r'.repeat(150)],
    );
  });
  after(() => house?.close());

  for (const [width, viewport] of [
    ['1280', DESKTOP],
    ['360', PHONE],
  ] as const) {
    it(`stays within ${width} pixels and shows the rest on demand`, async () => {
      const page = await house.signIn('/claims', { viewport });
      for (const [path, text] of [
        ['/claims', LONG_USER],
        ['/pools', LONG_POOL],
        ['/dead-letters', LONG_USER],
        ['/audit', `pool ${LONG_POOL}`],
        [`/pools/${LONG_POOL}`, LONG_POOL],
        ['/', LONG_POOL],
        [`/drop/${LONG_POOL}`, 'On sale now'],
      ] as const) {
        await page.goto(house.url + path);
        await page.getByText(text).first().waitFor();
        await assertHolds(page);
        if (path === '/claims') assert.equal(await page.getByTitle(LONG_USER).count(), 1);
      }
      await page.goto(`${house.url}/claims`);
      await page.locator('.row-link').first().click();
      await page.getByText('From the request to the ledger').waitFor();
      await page.getByText(LONG_USER).first().waitFor();
      await assertHolds(page);
      // It would be seen: the same text in a cell that does not bend.
      await page.goto(`${house.url}/claims`);
      await page.getByTitle(LONG_USER).waitFor();
      await page.evaluate(`{
        const given = document.querySelector('[title="${LONG_USER}"]');
        given.className = 'note';
        given.style.whiteSpace = 'nowrap';
        given.style.overflow = 'visible';
      }`);
      await assert.rejects(assertHolds(page));
      await page.context().close();
    });
  }

  it('calls what is held by its name, and leads from a pool to its dead letters', async () => {
    await bury(house, 'members');
    const page = await house.signIn('/pools/members');
    await page.getByText(`${LETTERS_A_POOL} held`).waitFor();
    await page.getByRole('link', { name: `${LETTERS_A_POOL} dead letters` }).click();
    await page.getByText('status 500').first().waitFor();
    await page.goto(`${house.url}/pools/${LONG_POOL.slice(1)}`);
    await page.getByText('This pool does not exist.').waitFor();
    await page.context().close();
  });

  it('leads from a pool that validates to the claims its hook refused, and from no other pool', async () => {
    await putOnSale(house.db1, 'strict', 1);
    await house.db1.query(`update engine_config set validation_webhook_url = $1 where pool_id = 'strict'`, [
      house.validation.url,
    ]);
    house.validation.status = 409;
    await claim(house.url, 'strict', { user_id: 'mallory' });
    const page = await house.signIn('/pools/strict');
    await page.getByRole('link', { name: 'Refused claims' }).click();
    // The bridge refuses it within a moment; the list is asked for again until it has.
    const refused = page.getByRole('row', { name: /mallory/ });
    for (const patience = Date.now() + 10_000; (await refused.count()) === 0; ) {
      assert(Date.now() < patience, 'the refused claim is not listed');
      await page.reload();
      await page.getByRole('heading', { level: 1 }).waitFor();
    }
    await refused.locator('.row-link').click();
    await page.getByText('refused by validation: status 409').first().waitFor();
    house.validation.status = 200;
    await putOnSale(house.db1, 'lenient', 1);
    await page.goto(`${house.url}/pools/lenient`);
    await page.getByRole('link', { name: 'Claims', exact: true }).first().waitFor();
    assert.equal(await page.getByRole('link', { name: 'Refused claims' }).count(), 0);
    await page.context().close();
  });

  it('changes how a pool is carried, and shows at the field what the server does not take', async () => {
    await putOnSale(house.db1, 'carried', 5);
    const page = await house.signIn('/pools/carried');
    const save = page.getByRole('button', { name: 'Save rules' });
    await page.getByLabel('Validation hook').fill('http://169.254.169.254/');
    await save.click();
    const field = page.getByLabel('Validation hook');
    await page.locator('.field-error', { hasText: 'the hook URL of pool carried is refused' }).waitFor();
    assert.equal(await field.getAttribute('aria-invalid'), 'true');
    assert.equal(await page.getByLabel('Commit hook').getAttribute('aria-invalid'), 'false');
    await assertAccessible(page);
    await assertFits(page);
    // A whole address is seen in it.
    await field.fill(`https://hooks.example/${'a'.repeat(70)}`);
    assert(
      await page.evaluate(
        '((input) => input.scrollWidth <= input.clientWidth)(document.querySelector("[name=validation_webhook_url]"))',
      ),
      'the address is cut off',
    );
    await field.fill(house.validation.url);
    await page.getByLabel('Visibility timeout, seconds').fill('120');
    await page.getByLabel('Dead letter at attempt').fill('1');
    await save.click();
    assert.equal(await page.locator('input[name="max_retries"]:invalid').count(), 1);
    await page.getByLabel('Dead letter at attempt').fill('3');
    await page.getByLabel('Reason for the change').fill('a new service');
    await save.click();
    await page.getByText('The rules are saved.').waitFor();
    const { rows } = await house.db1.query(
      `select c.visibility_timeout_sec, c.max_retries, c.validation_webhook_url, c.commit_rpc_name, l.reason
       from public.engine_config c join audit.audit_logs l on l.subject = 'pool carried'
       where c.pool_id = 'carried' and l.action <> 'rule_change'`,
    );
    assert.deepEqual(rows, [
      {
        visibility_timeout_sec: 120,
        max_retries: 3,
        validation_webhook_url: house.validation.url,
        commit_rpc_name: 'finalize_transaction',
        reason: 'a new service',
      },
    ]);
    await page.context().close();
  });

  it('speaks to people about an outage, not to programs', async () => {
    const page = await house.signIn('/events');
    await page.getByRole('heading', { level: 1, name: 'Events' }).waitFor();
    await house.stopLedger();
    await page.reload();
    const trouble = page.getByRole('alert').filter({ hasText: 'This page tries again by itself.' });
    await trouble.waitFor();
    assert.doesNotMatch(await trouble.innerText(), /Retry-After|request_id/);
    await page.goto(house.url);
    // The gate is shut and so is the number beside it.
    await page.locator('.pipe-shut').waitFor();
    const tile = page.locator('.tile', { hasText: 'Drained per second' });
    assert.equal(await tile.locator('.tile-value').innerText(), '–');
    await house.startLedger();
    await page.context().close();
  });
});
