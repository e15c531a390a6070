// Every page of the console, by the list that the server itself has: axe, a phone in the dark, the keyboard alone, and what it weighs.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { assertAccessible, assertFits } from '../browser_drop/support.ts';
import { ensureChromium } from '../chromium.ts';
import { EveryPlace, type Place } from './every_place.ts';
import { picture, weigh } from './support.ts';

const chromium = await ensureChromium();
const skip = 'missing' in chromium && chromium.missing;
const PHONE = { width: 390, height: 800 };
const MAX_FIRST_LOAD_BYTES = 300_000;
/** More than any page has to stop at. */
const MOST_STOPS = 1_000;
/** For the documents. */
const PICTURED: Readonly<Record<string, string>> = {
  '/payments/:payment': 'payment',
  '/users/:user': 'user',
};

/** What a person can do something with; of a group of radio buttons Tab reaches one. */
const CLICKABLE =
  'a[href], button:not(:disabled), input:not(:disabled, [type="radio"], [type="hidden"]), select:not(:disabled), textarea:not(:disabled), summary, [tabindex="0"]';

/**
 * Marks what has the focus. Says "end" behind the last stop, and else what is wrong with this one. A field for a time has several stops:
 * its day, its month.
 */
const STOP = `(() => {
  const at = document.activeElement;
  if (at !== null && at === globalThis.lastStop) return '';
  globalThis.lastStop = at;
  if (at === null || at === document.body || at.dataset.reached) return 'end';
  at.dataset.reached = 'yes';
  const isDrawn = (element, part) => {
    const { outlineStyle, outlineWidth } = getComputedStyle(element, part);
    return outlineStyle !== 'none' && outlineWidth !== '0px';
  };
  const around = at.closest('.search-box form');
  return isDrawn(at) || isDrawn(at, '::after') || (around && isDrawn(around)) ? '' : at.outerHTML.slice(0, 200);
})()`;

const UNREACHED = `[...document.querySelectorAll(${JSON.stringify(CLICKABLE)})]
  .filter((element) => element.tabIndex >= 0 && !element.dataset.reached && element.checkVisibility({ visibilityProperty: true }))
  .map((element) => element.outerHTML.slice(0, 200))`;

/** From the top with Tab alone: whatever can be clicked is reached, and shows that it has the focus. */
async function assertByKeyboard(page: Page): Promise<void> {
  const unseen: string[] = [];
  for (let stops = 0; ; stops++) {
    assert(stops < MOST_STOPS, 'Tab does not come to an end');
    await page.keyboard.press('Tab');
    const said = (await page.evaluate(STOP)) as string;
    if (said === 'end') break;
    if (said !== '') unseen.push(said);
  }
  assert.deepEqual(unseen, [], 'these do not show that they have the focus');
  assert.deepEqual(await page.evaluate(UNREACHED), [], 'Tab does not reach these');
}

describe('every page that the console has', { skip }, () => {
  let every: EveryPlace;
  let places: [string, Place][];
  before(async () => {
    every = await EveryPlace.open('path' in chromium ? chromium.path : '');
    places = Object.entries(await every.places()).flatMap(([path, some]) =>
      some.map((place): [string, Place] => [path, place]),
    );
  });
  after(() => every?.close());

  for (const [scheme, options] of Object.entries({
    'in the light': { colorScheme: 'light' },
    'in the dark on a phone': { colorScheme: 'dark', viewport: PHONE },
  } as const))
    it(`is one that axe has nothing against and that fits, ${scheme}`, async () => {
      const page = await every.signIn('/', options);
      const complaints: string[] = [];
      page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
      page.on('pageerror', (error) => complaints.push(error.message));
      for (const [path, place] of places) {
        await every.show(page, place);
        await assertAccessible(page);
        await assertFits(page);
        const name = PICTURED[path];
        if (name !== undefined && options.colorScheme === 'light') await picture(page, name);
      }
      assert.deepEqual(complaints, []);
      await page.context().close();
    });

  it('can be used by the keyboard alone', async () => {
    const page = await every.signIn('/');
    for (const [, place] of places) {
      await every.show(page, place);
      await assertByKeyboard(page);
    }
    await page.context().close();
  });

  it('would not be found so if Tab left something out, or nothing showed the focus', async () => {
    const page = await every.signIn('/');
    await every.show(page, ['/health', 'DB2 ledger']);
    // The first button of the page gives the focus away at once.
    await page.evaluate(
      `document.querySelector('main .page-actions button').addEventListener('focus', (event) => event.target.blur())`,
    );
    await assert.rejects(assertByKeyboard(page), /Tab does not reach these/);
    await every.show(page, ['/health', 'DB2 ledger']);
    await page.evaluate(`document.querySelector('main .page-actions button').style.outline = 'none'`);
    await assert.rejects(assertByKeyboard(page), /do not show that they have the focus/);
    await page.context().close();
  });

  it('is below 300 KB on the wire at a first visit', async () => {
    const page = await every.signIn('/health');
    const weight = await weigh(page);
    for (const [path, place] of places) {
      weight.reset();
      await every.show(page, place);
      assert(weight.bytes() > 10_000, 'nothing was counted');
      assert(
        weight.bytes() < MAX_FIRST_LOAD_BYTES,
        `${path} took ${weight.bytes()} bytes:\n${weight.parts()}`,
      );
    }
    await page.context().close();
  });
});
