// The menu and its foot, at heights where not all of it fits.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { ensureChromium } from '../chromium.ts';
import { type House, openHouse, picture } from './support.ts';

const chromium = await ensureChromium();
const skip = 'missing' in chromium && chromium.missing;
const ENTRIES = 18;
const PATIENCE_MS = 5_000;

/** What a pointer meets where the element is: all of it in the window, and nothing in front. Made of text: tests know no window. */
const isSeen = new Function(
  'element',
  `if (element === null) return false;
   const { left, right, top, bottom } = element.getBoundingClientRect();
   const isInside = left >= 0 && top >= 0 && right <= innerWidth + 1 && bottom <= innerHeight + 1;
   const met = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
   return isInside && met !== null && (element.contains(met) || met.contains(element));`,
) as (element: unknown) => boolean;
const FOCUSED = '#menu a:focus, #menu button:focus';

/** The foot is in view, and Tab brings each entry into view, in its order, and then the foot's button. */
async function assertReachable(page: Page): Promise<void> {
  const signOut = page.getByRole('button', { name: 'Sign out' });
  assert(await signOut.evaluate(isSeen), 'the foot is not in view');
  const links = page.locator('#menu a');
  assert.equal(await links.count(), ENTRIES);
  await links.first().focus();
  for (let entry = 0; entry < ENTRIES; entry++) {
    const focused = page.locator(FOCUSED);
    const name = await focused.textContent();
    assert.equal(name, await links.nth(entry).textContent());
    assert(await focused.evaluate(isSeen), `${name} has the focus and is not in view`);
    await page.keyboard.press('Tab');
  }
  assert.equal(await page.locator(FOCUSED).textContent(), 'Sign out', 'Tab leads to the foot');
  assert(await signOut.evaluate(isSeen), 'the foot has the focus and is not in view');
}

const isScrolling = (page: Page): Promise<unknown> =>
  page.evaluate(
    `(({ scrollHeight, clientHeight }) => scrollHeight > clientHeight + 1)(document.querySelector('.places'))`,
  );

describe('the menu of the console', { skip }, () => {
  let house: House;
  before(async () => {
    house = await openHouse('path' in chromium ? chromium.path : '');
  });
  after(() => house?.close());

  for (const [width, height, isScrolled] of [
    [1280, 800, false],
    [1280, 600, true],
    [390, 800, true],
    [390, 600, true],
  ] as const)
    it(`shows its foot, and each entry to the keyboard, at ${width} × ${height}`, async () => {
      const page = await house.signIn('/health', { viewport: { width, height } });
      await page.getByText('DB2 ledger').waitFor();
      if (width < 1000) await page.getByRole('button', { name: 'Menu' }).click();
      assert.equal(await isScrolling(page), isScrolled);
      // The page of now is in view, though it is the last.
      assert(await page.locator('#menu a[aria-current]').evaluate(isSeen), 'the page of now is not in view');
      await picture(page, `menu-${width}-${height}`);
      await assertReachable(page);
      if (isScrolled) {
        await page.locator('.places').hover();
        await page.mouse.wheel(0, -5_000);
        const top = () => page.evaluate('document.querySelector(".places").scrollTop');
        for (const end = Date.now() + PATIENCE_MS; (await top()) !== 0; await page.waitForTimeout(50))
          assert(Date.now() < end, 'a wheel does not scroll the list');
        assert(
          await page.locator('#menu a').first().evaluate(isSeen),
          'a wheel does not bring the first entry',
        );
        assert.equal(await page.evaluate('scrollY'), 0, 'the page behind it has moved');
      }
      await page.context().close();
    });

  it('control: a foot below the window, or a list that is cut off, is found', async () => {
    const page = await house.signIn('/health', { viewport: { width: 1280, height: 600 } });
    await page.getByText('DB2 ledger').waitFor();
    await page.evaluate(`document.querySelector('.places').style.flexShrink = '0'`);
    await assert.rejects(assertReachable(page), /the foot is not in view/);
    await page.evaluate(`document.querySelector('.places').style.cssText = 'overflow: clip'`);
    await assert.rejects(assertReachable(page), /has the focus and is not in view/);
    await page.context().close();
  });
});
