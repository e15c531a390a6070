// Every request that Twilio, Meta and Daily document, signed and sent to a queued and to an inline endpoint: each is stored as
// its events, none becomes a dead letter, and a second delivery adds no event.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { DAILY } from './documented/daily.ts';
import { META } from './documented/meta.ts';
import type { Documented } from './documented/request.ts';
import { TWILIO } from './documented/twilio.ts';
import { SECRET_NAMES, WebhookWorld } from './world.ts';

const PROVIDERS: Record<string, readonly Documented[]> = { twilio: TWILIO, whatsapp: META, daily: DAILY };

/** The reasons in the table of docs/integrations/README.md, without what stands in < and >. */
const REASONS = [...readFileSync('docs/integrations/README.md', 'utf8').matchAll(/^\| `([^`]+)` \|/gm)].map(
  ([, reason = '']) => reason.split('<', 1)[0] ?? '',
);

describe('what providers document', () => {
  let world: WebhookWorld;
  before(async () => {
    world = await WebhookWorld.start();
  });
  after(() => world?.stop());

  const deliver = async (endpoint: string, provider: string, documented: Documented) => {
    const { body, headers, isHashed } = documented;
    const query = isHashed
      ? `bodySHA256=${createHash('sha256').update(body).digest('hex')}`
      : (documented.query ?? '');
    const url = `${world.server.url}/webhooks/${endpoint}${query && `?${query}`}`;
    return world.send(endpoint, provider, body, { url, headers: { ...headers } });
  };
  const stored = (webhookId: string) =>
    world.rows<{ event_type: string; status: string; error: string | null }>(
      'select event_type, status::text, error from public.webhook_events where webhook_id = $1 order by arrival',
      [webhookId],
    );

  for (const [provider, requests] of Object.entries(PROVIDERS))
    for (const mode of ['queued', 'inline'])
      it(`by ${provider} is stored event by event, ${mode}, and none is a dead letter`, async () => {
        const name = `${provider}-${mode}`;
        // Each has a tenant of its own, so that the second knows nothing of the first.
        const [added] = await world.rows<{ id: string }>(
          `select webhook.add_endpoint($1, $2, $3, $4, '{}', 'test') as id`,
          [name, provider, [SECRET_NAMES[provider]], mode],
        );
        const webhookId = added?.id ?? '';
        for (const request of requests) {
          const { status, text } = await deliver(name, provider, request);
          assert.equal(status, 200, `${request.name}: ${text}`);
        }
        await world.process();
        const events = await stored(webhookId);
        assert.deepEqual(
          events.map(({ event_type }) => event_type),
          requests.flatMap(({ types }) => types),
        );
        const unfinished = events.filter(({ status }) => status !== 'success' && status !== 'skipped');
        assert.deepEqual(unfinished, []);
        for (const { error } of events.filter(({ status }) => status === 'skipped'))
          assert.ok(
            REASONS.some((reason) => error?.startsWith(reason)),
            `${error} is not on the list`,
          );
        for (const request of requests) await deliver(name, provider, request);
        assert.equal((await stored(webhookId)).length, events.length);
        assert.deepEqual(await world.rows('select event_id from public.webhook_alarms'), []);
      });

  it('keeps every digit of an id above 2^53', async () => {
    const rows = await world.rows(
      `select payload #>> '{change,value,message_template_id}' as id from public.webhook_events
       where event_type = 'message_template_status_update' order by 1`,
    );
    const ids = [...new Set(rows.map(({ id }) => id))];
    assert.deepEqual(ids, ['9007199254740991', '9007199254740993']);
  });
});
