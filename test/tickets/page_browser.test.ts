// A ticket's page in a real browser: on a phone, light and dark, on paper, and without any script.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import decodeQr from 'qr/decode.js';
import {
  assertAccessible,
  assertFits,
  openShop,
  picture,
  type Shop,
} from '../console/browser_drop/support.ts';
import { ensureChromium } from '../console/chromium.ts';
import { putOnSale } from '../server/support.ts';
import { TICKET_SECRET, tokens, voidTicket, type WrittenTicket, writeTicket } from './support.ts';

const chromium = await ensureChromium();
const skip = 'missing' in chromium && chromium.missing;
const PUBLIC = new URL('https://tickets.example.com');

describe("a ticket's page in a browser", { skip }, () => {
  let shop: Shop;
  let ticket: WrittenTicket;
  before(async () => {
    shop = await openShop('path' in chromium ? chromium.path : '', {
      ticketSecrets: [TICKET_SECRET],
      proxy: { trustedProxies: 0, publicUrl: PUBLIC },
    });
    await putOnSale(shop.db1, 'winter_gala', 1, {});
    await shop.db1.query(`select public.set_pool_details('winter_gala', $1, 'olga')`, [
      {
        title: 'Winter Gala of the Very Long Name, with Guests from Reykjavík',
        starts_at: '2026-12-31T19:30:00Z',
        time_zone: 'Atlantic/Reykjavik',
        place: 'Harpa, Eldborg, Austurbakki 2, Reykjavík',
      },
    ]);
    await shop.db1.query(`update public.inventory_slots set label = 'Stalls, row 12, seat 34'`);
    const { rows } = await shop.db1.query('select id from public.inventory_slots');
    const claimId = crypto.randomUUID();
    await shop.db2.query('select public.finalize_transaction($1)', [
      { claim_id: claimId, resource_id: rows[0].id, pool_id: 'winter_gala', user_id: 'ann', state: 'queued' },
    ]);
    ticket = { claimId, resourceId: rows[0].id, token: await tokens.tokenOf(claimId) };
  });
  after(() => shop?.close());

  async function open({ token }: WrittenTicket, options: Parameters<Shop['visit']>[0] = {}): Promise<Page> {
    const page = await (await shop.visit(options)).newPage();
    await page.goto(`${shop.url}/t/${token}`);
    return page;
  }

  /** What a camera that sees the screen reads. */
  async function scan(page: Page): Promise<string> {
    const png = (await page.locator('.qr').screenshot({ scale: 'css' })).toString('base64');
    const { width, height, data } = (await page.evaluate(`(async () => {
      const bytes = Uint8Array.from(atob(${JSON.stringify(png)}), (c) => c.charCodeAt(0));
      const picture = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
      const canvas = new OffscreenCanvas(picture.width, picture.height);
      const context = canvas.getContext('2d');
      context.drawImage(picture, 0, 0);
      const { width, height, data } = context.getImageData(0, 0, picture.width, picture.height);
      return { width, height, data: [...data] };
    })()`)) as { width: number; height: number; data: number[] };
    return decodeQr({ width, height, data: Uint8Array.from(data) });
  }

  for (const colorScheme of ['light', 'dark'] as const) {
    it(`fits a phone, can be read by all and scanned, ${colorScheme}`, async () => {
      const page = await open(ticket, { colorScheme });
      if (colorScheme === 'light') await picture(page, 'ticket');
      await assertAccessible(page);
      await assertFits(page);
      assert.equal(await scan(page), `https://tickets.example.com/t/${ticket.token}`);
      await page.setViewportSize({ width: 320, height: 640 });
      await assertFits(page);
      await page.context().close();
    });
  }

  it('is one sheet of paper, black on white, with a code that can be scanned', async () => {
    const page = await open(ticket, { colorScheme: 'dark' });
    await page.emulateMedia({ media: 'print' });
    const colours = (await page.evaluate(
      `[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector('h1')).color]`,
    )) as string[];
    assert.deepEqual(colours, ['rgb(255, 255, 255)', 'rgb(0, 0, 0)']);
    await page.setViewportSize({ width: 794, height: 1_123 });
    assert.equal(await scan(page), `https://tickets.example.com/t/${ticket.token}`);
    const pdf = (await page.pdf({ format: 'A4' })).toString('latin1');
    assert.equal(pdf.match(/\/Type \/Page\b(?!s)/g)?.length, 1);
    await page.context().close();
  });

  it('needs no script, and loads nothing but its style', async () => {
    const context = await shop.visit({ javaScriptEnabled: false });
    const page = await context.newPage();
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    await page.goto(`${shop.url}/t/${ticket.token}`);
    assert.match(
      await page.locator('.facts').innerText(),
      /Thursday, 31 December 2026 at 19:30 GMT[\s\S]*Harpa[\s\S]*Stalls, row 12, seat 34/,
    );
    assert.deepEqual(
      asked.filter((path) => path !== '/favicon.ico').map((path) => path.replace(/-\w+\.css$/, '.css')),
      [`/t/${ticket.token}`, '/assets/ticket.css'],
    );
    await context.close();
  });

  it('says so when it was used and when it was taken back, to all', async () => {
    const used = await writeTicket(shop.db2, 'winter_gala');
    await shop.db2.query(`select * from public.check_ticket($1, 'gate')`, [used.claimId]);
    const voided = await writeTicket(shop.db2, 'winter_gala');
    await voidTicket(shop.db2, voided);
    for (const [one, state] of [
      [used, 'Used'],
      [voided, 'Voided'],
    ] as const)
      for (const colorScheme of ['light', 'dark'] as const) {
        const page = await open(one, { colorScheme });
        assert.equal(await page.locator('.state').innerText(), state);
        await assertAccessible(page);
        await assertFits(page);
        await page.context().close();
      }
    const nowhere = await open({ ...used, token: 'x' });
    await assertAccessible(nowhere);
    await nowhere.context().close();
  });
});
