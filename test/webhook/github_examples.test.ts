// Every example of GitHub's own collection, as JSON and as a form: each is stored, none is a dead letter, none is lost.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { after, before, describe, it } from 'node:test';
import { SECRETS, WebhookWorld } from './world.ts';

interface Examples {
  readonly name: string;
  readonly examples: readonly unknown[];
}

const ALL = createRequire(import.meta.url)(
  '@octokit/webhooks-examples/api.github.com/index.json',
) as Examples[];
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

describe('the examples of GitHub', () => {
  let world: WebhookWorld;
  before(async () => {
    world = await WebhookWorld.start();
  });
  after(() => world?.stop());

  for (const kind of ['json', 'form'])
    it(`are stored as ${kind}, each once, and skipped for want of a handler`, async () => {
      const name = `github-${kind}`;
      await world.db2.query(
        `select webhook.add_endpoint($1, 'github', '{WHATSAPP_APP_SECRET}', 'queued', '{}', 'test')`,
        [name],
      );
      // The same body under two ids is one event.
      const bodies = new Set<string>();
      for (const { name: event, examples } of ALL)
        for (const [index, example] of examples.entries()) {
          const json = JSON.stringify(example);
          bodies.add(json);
          const body = kind === 'form' ? `payload=${encodeURIComponent(json)}` : json;
          const answer = await world.send(name, 'github', body, {
            secret: SECRETS.WHATSAPP_APP_SECRET ?? '',
            headers: {
              ...(kind === 'form' && FORM),
              'x-github-event': event,
              'x-github-delivery': `${event}-${index}`,
            },
          });
          assert.equal(answer.status, 200, `${event} ${index}: ${answer.text}`);
        }
      assert.ok(bodies.size > 100);
      await world.process();
      const rows = await world.rows(
        `select e.status::text, e.error = 'no handler for ' || e.event_type as is_told, count(*)::int as n
         from public.webhook_events e join public.webhook_endpoints p using (webhook_id) where p.name = $1 group by 1, 2`,
        [name],
      );
      assert.deepEqual(rows, [{ status: 'skipped', is_told: true, n: bodies.size }]);
    });
});
