// The page of the API in a real browser: everything of it comes from this server, and its policy refuses nothing that the page needs.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertAccessible, assertFits } from '../browser_drop/support.ts';
import { ensureChromium } from '../chromium.ts';
import { DESKTOP, type House, openHouse } from './support.ts';

const chromium = await ensureChromium();
const skip = 'missing' in chromium && chromium.missing;
/**
 * How Swagger UI builds its headings, what it puts beside its main part, and the link inside the button of an operation, by which the
 * operation has an address.
 */
const OF_SWAGGER_UI = ['heading-order', 'region', 'nested-interactive'];
const TELEPHONE = { width: 390, height: 844 };
/** Perceived brightness of a colour, from 0 to 1. */
const BRIGHTNESS = `(() => {
  const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).map(Number);
  return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255;
})()`;

describe('/docs', { skip }, () => {
  let house: House;
  before(async () => {
    house = await openHouse('path' in chromium ? chromium.path : '');
  });
  after(() => house?.close());

  for (const [colorScheme, viewport, isBright] of [
    ['light', DESKTOP, true],
    ['dark', DESKTOP, false],
    ['light', TELEPHONE, true],
    ['dark', TELEPHONE, false],
  ] as const)
    it(`shows every operation in ${colorScheme} at ${viewport.width} pixels, without a session and without a word to others`, async () => {
      const context = await house.visit({ colorScheme, viewport });
      const page = await context.newPage();
      const complaints: string[] = [];
      const elsewhere: string[] = [];
      page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
      page.on('pageerror', (error) => complaints.push(error.message));
      page.on('request', (request) => {
        const { protocol, origin } = new URL(request.url());
        if (protocol !== 'data:' && origin !== house.url) elsewhere.push(request.url());
      });
      await page.goto(`${house.url}/docs`);
      await page.getByText('Take one slot of the pool, or several at once').waitFor();
      const { paths } = (await (await fetch(`${house.url}/openapi.json`)).json()) as {
        paths: Record<string, Record<string, unknown>>;
      };
      const operations = Object.values(paths).flatMap((methods) => Object.keys(methods)).length;
      assert.equal(await page.locator('.opblock').count(), operations);
      assert.equal(((await page.evaluate(BRIGHTNESS)) as number) > 0.5, isBright);
      await assertFits(page);

      await page.goto(`${house.url}/docs#/claims/claimSlot`);
      await page.reload();
      await page.getByText('order-1').first().waitFor();
      assert.equal(
        await page.getByRole('button', { name: 'Try it out' }).count(),
        0,
        'it shows, and sends nothing',
      );
      await assertFits(page);
      assert.deepEqual([complaints, elsewhere], [[], []]);
      await assertAccessible(page, OF_SWAGGER_UI);
      await context.close();
    });
});
