// Two operators with different roles, side by side.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { addOperator } from '../../operators/support.ts';
import { ensureChromium } from '../chromium.ts';
import { addEndpoint, deliver, processEvents } from './deliveries.ts';
import { bury } from './seed.ts';
import { type House, openHouse, picture } from './support.ts';

const chromium = await ensureChromium();
const skip = 'missing' in chromium && chromium.missing;

const VIEWER = 'Zoë 李 Müller';
const OPERATOR = 'Ada Lovelace';

describe('two operators in the console', { skip }, () => {
  let house: House;
  let keys: Record<string, string>;
  before(async () => {
    house = await openHouse('path' in chromium ? chromium.path : '');
    keys = {
      [VIEWER]: await addOperator(house.db1, VIEWER, 'viewer'),
      [OPERATOR]: await addOperator(house.db1, OPERATOR, 'operator'),
    };
    await bury(house, 'members');
  });
  after(() => house?.close());

  it('each see their name, and are offered what their role allows', async () => {
    const viewer = await (await house.visit()).newPage();
    await viewer.goto(`${house.url}/dead-letters`);
    await viewer.getByLabel('Your key').fill(keys[VIEWER] ?? '');
    await viewer.keyboard.press('Enter');
    await viewer.locator('.who', { hasText: `${VIEWER}viewer` }).waitFor();
    await viewer.getByRole('link', { name: '#1' }).waitFor();
    assert.equal(await viewer.getByRole('checkbox').count(), 0);
    await picture(viewer, 'viewer-dead-letters');
    await viewer.goto(`${house.url}/pools/members`);
    await viewer.getByRole('heading', { name: 'Rules' }).waitFor();
    assert.equal(await viewer.getByRole('button', { name: /Save rules|Add slots|Close pool/ }).count(), 0);
    assert(await viewer.getByLabel('Only signed-in users').isDisabled());
    await picture(viewer, 'viewer-pool');
    await viewer.context().close();

    const operator = await house.signIn('/dead-letters', undefined, keys[OPERATOR]);
    await operator.locator('.who', { hasText: `${OPERATOR}operator` }).waitFor();
    house.validation.status = 200;
    await operator.getByLabel('Select letter 1').check();
    await operator.getByRole('button', { name: 'Replay…' }).click();
    await operator.getByLabel('Reason', { exact: true }).fill('repaired');
    await picture(operator, 'operator-replays');
    await operator.getByRole('button', { name: 'Yes, replay' }).click();
    await operator.goto(`${house.url}/audit`);
    await operator.getByRole('row', { name: /Ada Lovelace dead letter replay/ }).waitFor();
    await picture(operator, 'operator-audit');
    await operator.goto(`${house.url}/webhooks`);
    await operator.getByRole('heading', { level: 1, name: 'Webhooks' }).waitFor();
    assert.equal(await operator.getByRole('button', { name: 'New endpoint' }).count(), 0);
    await operator.context().close();
  });

  it('see money without a user, and only who may is offered to name one', async () => {
    await addEndpoint(house, 'stripe', 'stripe');
    await deliver(house, 'stripe', 'payment_intent.succeeded', 'evt_23', { user: '' });
    await processEvents(house);
    for (const [name, buttons] of [
      [VIEWER, 0],
      [OPERATOR, 1],
    ] as const) {
      const page = await house.signIn('/webhooks', undefined, keys[name]);
      const row = page.getByRole('row', { name: /pi_23 stripe 4900/ });
      await row.waitFor();
      assert.equal(await row.getByRole('button').count(), buttons, name);
      await page.context().close();
    }
  });

  it('are refused by the server where a page asks for more', async () => {
    const page = await house.signIn('/pools', undefined, keys[VIEWER]);
    const status = await page.evaluate(
      async () =>
        (
          await fetch('/admin/pools/members', {
            method: 'POST',
            headers: { 'content-type': 'application/json', 'x-sluice-csrf': '1' },
            body: '{"is_active":false}',
          })
        ).status,
    );
    assert.equal(status, 403);
    await page.context().close();
  });
});
