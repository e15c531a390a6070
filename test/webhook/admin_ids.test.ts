// An event's id in either case: some tools write uuids in capitals, and Postgres reads both.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WebhookAdminRoutes } from '#core/webhook/admin.ts';
import type { OperatorStore } from '#core/webhook/operators.ts';
import { askRoutes } from '../core/support.ts';

const ID = 'ABCDEF01-2345-4678-9ABC-DEF012345678';

function open() {
  const asked: unknown[] = [];
  const answer = async (what: unknown) => {
    asked.push(what);
    return [];
  };
  const eventLinks = async () => ({ payments: [], credits: 0, audit: [] });
  const store = { showEvent: answer, eventLinks, replay: answer, skip: answer, listEvents: answer };
  const ports = {
    store: store as unknown as OperatorStore,
    secrets: { faultOf: async () => undefined },
    authorize: () => 'operator',
  };
  return { asked, ask: askRoutes(new WebhookAdminRoutes(ports).routes('/admin/webhooks')) };
}
const post = (path: string, body: unknown) => ({ method: 'POST', path: `/admin/webhooks${path}`, body });

describe('the id of an event', () => {
  for (const id of [ID, ID.toLowerCase()])
    it(`may be ${id}`, async () => {
      const { ask, asked } = open();
      for (const request of [
        { path: `/admin/webhooks/events/${id}` },
        post('/events/replay', { ids: [id] }),
        post('/events/skip', { ids: [id] }),
      ])
        assert.equal((await ask(request)).status, 200, request.path);
      assert.equal(asked.length, 3);
    });

  it('is the same id in both, for a key that is for one event', async () => {
    const { ask } = open();
    const replay = (...ids: string[]) => ask(post('/events/replay', { ids, idempotency_key: 'key' }));
    assert.equal((await replay(ID, ID.toLowerCase())).status, 200);
    assert.equal((await replay(ID, ID.replace('A', 'B'))).status, 422);
  });

  it('is refused where it is not a uuid', async () => {
    const { ask, asked } = open();
    for (const id of [ID.slice(1), `${ID}0`, ID.replace('A', 'G'), ID.replaceAll('-', '')]) {
      assert.equal((await ask({ path: `/admin/webhooks/events/${id}` })).status, 422);
      assert.equal((await ask(post('/events/replay', { ids: [id] }))).status, 422);
    }
    assert.deepEqual(asked, []);
  });
});
