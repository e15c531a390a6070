// One table of requests to the webhook door and what it has to answer, whichever runtime it runs on.

import assert from 'node:assert/strict';
import type pg from 'pg';
import { providerNamed } from '#core/webhook/providers.ts';
import { nodeHmac } from '../../src/webhook/hmac.ts';
import { type Answer, ask, assertRefusal } from '../server/support.ts';
import { allowSecrets, paymentEvent, type Sending, send } from './world.ts';

export interface Target {
  /** What stands before the endpoint's name. */
  base: string;
  secrets: Record<string, string>;
  db2: pg.Client;
}

interface Asked {
  name: string;
  /** The status, and the word in `status` or in `error.code`. */
  expected: [status: number, word: string];
  /** How often the event is stored afterwards, by its id. */
  stored?: [eventId: string, rows: number];
  ask(target: Target): Promise<Answer>;
}

const MEGABYTE = 1024 * 1024;
const STALE_SEC = 301;
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

function post(target: Target, endpoint: string, body: string | Uint8Array, more: Partial<Sending> = {}) {
  const secret = target.secrets.STRIPE_WEBHOOK_SECRET ?? '';
  return send({ url: `${target.base}/${endpoint}`, provider: 'stripe', body, secret, ...more });
}

const whatsapp = (target: Target, query: string) => ask(`${target.base}/whatsapp?${query}`);
const nowSec = () => Math.floor(Date.now() / 1000);
const event = (id: string, more = '') => `{"id":"${id}","type":"table.test","created":1770000000${more}}`;

/** The endpoints that the table asks for. Those of `npm start` may be there already. */
export async function addTableEndpoints({ db2, base }: Target): Promise<void> {
  const rows: [string, string, string, string, Record<string, unknown>][] = [
    ['stripe', 'stripe', 'STRIPE_WEBHOOK_SECRET', 'queued', {}],
    ['twilio', 'twilio', 'TWILIO_AUTH_TOKEN', 'queued', {}],
    ['whatsapp', 'whatsapp', 'WHATSAPP_APP_SECRET', 'queued', { verify_token_name: 'WHATSAPP_VERIFY_TOKEN' }],
    ['inline', 'stripe', 'STRIPE_WEBHOOK_SECRET', 'inline', {}],
    ['slack', 'slack', 'STRIPE_WEBHOOK_SECRET', 'queued', {}],
    ['off', 'stripe', 'STRIPE_WEBHOOK_SECRET', 'queued', { is_active: false }],
    ['keyless', 'stripe', 'NOBODY_HAS_SET_THIS', 'queued', {}],
    ['unknown-provider', 'fax', 'STRIPE_WEBHOOK_SECRET', 'queued', {}],
    ['twilio-anywhere', 'twilio', 'TWILIO_AUTH_TOKEN', 'queued', {}],
    ['small', 'stripe', 'STRIPE_WEBHOOK_SECRET', 'queued', { max_body_bytes: 100 }],
  ];
  await allowSecrets(db2, ['NOBODY_HAS_SET_THIS']);
  for (const [name, provider, secret, mode, settings] of rows) {
    await db2.query(
      `select webhook.add_endpoint($1, $2, $3, $4, $5, 'test')
       where not exists (select from public.webhook_endpoints where name = $1)`,
      [name, provider, [secret], mode, settings],
    );
  }
  await db2.query(
    `insert into public.webhook_endpoints (name, provider, secret_names) values ('unlisted', 'stripe', '{OPS_SITE_ID}')
     on conflict do nothing`,
  );
  // A gateway in front shows the function another path than Twilio signs.
  await db2.query(`select webhook.change_endpoint('twilio', $1, 'test')`, [{ public_url: `${base}/twilio` }]);
}

export const TABLE: Asked[] = [
  {
    name: 'another method',
    expected: [405, 'method_not_allowed'],
    ask: ({ base }) => ask(`${base}/stripe`, { method: 'PUT', body: {} }),
  },
  {
    name: 'GET at a provider without a handshake',
    expected: [405, 'method_not_allowed'],
    ask: ({ base }) => ask(`${base}/stripe`),
  },
  {
    name: 'an endpoint that was never set up',
    expected: [404, 'unknown_endpoint'],
    ask: (target) => post(target, 'unknown', event('evt_t0')),
  },
  {
    name: 'an endpoint that is switched off',
    expected: [404, 'unknown_endpoint'],
    ask: (target) => post(target, 'off', event('evt_t1')),
    stored: ['evt_t1', 0],
  },
  {
    name: 'a path below the endpoint',
    expected: [404, 'not_found'],
    ask: (target) => post(target, 'stripe/x', event('evt_t1')),
  },
  {
    name: 'a body that is not said to be JSON',
    expected: [415, 'unsupported_media_type'],
    ask: (target) => post(target, 'stripe', event('evt_t2'), { headers: { 'content-type': 'text/plain' } }),
    stored: ['evt_t2', 0],
  },
  {
    name: 'a form to a provider that sends none',
    expected: [415, 'unsupported_media_type'],
    ask: (target) => post(target, 'stripe', 'a=b', { headers: FORM }),
  },
  {
    name: 'a body that would have to be inflated',
    expected: [415, 'unsupported_media_type'],
    ask: (target) => post(target, 'stripe', event('evt_t3'), { headers: { 'content-encoding': 'gzip' } }),
  },
  {
    name: "more than the endpoint's limit",
    expected: [413, 'too_large'],
    ask: (target) => post(target, 'small', event('evt_t4', `,"pad":"${'x'.repeat(100)}"`)),
    stored: ['evt_t4', 0],
  },
  {
    name: 'more than a megabyte',
    expected: [413, 'too_large'],
    ask: (target) => post(target, 'stripe', event('evt_t5', `,"pad":"${'x'.repeat(MEGABYTE)}"`)),
    stored: ['evt_t5', 0],
  },
  {
    name: 'no signature',
    expected: [401, 'bad_signature'],
    ask: ({ base }) => ask(`${base}/stripe`, { method: 'POST', body: event('evt_t6') }),
    stored: ['evt_t6', 0],
  },
  {
    name: 'the signature of another secret',
    expected: [401, 'bad_signature'],
    ask: (target) => post(target, 'stripe', event('evt_t7'), { secret: 'whsec_other' }),
    stored: ['evt_t7', 0],
  },
  {
    name: 'a signature too old',
    expected: [401, 'bad_signature'],
    ask: (target) => post(target, 'stripe', event('evt_t8'), { nowSec: nowSec() - STALE_SEC }),
    stored: ['evt_t8', 0],
  },
  {
    name: 'a signature from the future',
    expected: [401, 'bad_signature'],
    ask: (target) => post(target, 'stripe', event('evt_t9'), { nowSec: nowSec() + STALE_SEC + 5 }),
    stored: ['evt_t9', 0],
  },
  {
    name: 'an endpoint whose secret is not set, even for an empty secret',
    expected: [401, 'bad_signature'],
    ask: (target) => post(target, 'keyless', event('evt_t10'), { secret: '' }),
    stored: ['evt_t10', 0],
  },
  {
    name: 'an unknown provider',
    expected: [401, 'bad_signature'],
    ask: (target) => post(target, 'unknown-provider', event('evt_t11')),
    stored: ['evt_t11', 0],
  },
  {
    name: 'forged bytes that are no JSON: the signature comes first',
    expected: [401, 'bad_signature'],
    ask: (target) => post(target, 'stripe', '{', { secret: 'whsec_other' }),
  },
  {
    name: 'signed bytes that are no JSON',
    expected: [400, 'invalid_json'],
    ask: (target) => post(target, 'stripe', '{"id":"evt_t12"'),
  },
  {
    name: 'signed bytes that are no UTF-8',
    expected: [400, 'invalid_json'],
    ask: (target) => post(target, 'stripe', new Uint8Array([0x7b, 0xff, 0x7d])),
  },
  {
    name: 'a byte order mark',
    expected: [400, 'invalid_json'],
    ask: (target) => post(target, 'stripe', `\ufeff${event('evt_t13')}`),
  },
  {
    name: 'a key twice: the last one counts',
    expected: [200, 'recorded'],
    ask: (target) => post(target, 'stripe', event('evt_t14', ',"id":"evt_t15"')),
    stored: ['evt_t15', 1],
  },
  {
    name: 'a character that jsonb refuses',
    expected: [200, 'quarantined'],
    ask: (target) => post(target, 'stripe', event('evt_t16', ',"x":"\\u0000"')),
    stored: ['evt_t16', 1],
  },
  {
    name: 'the same again',
    expected: [200, 'duplicate'],
    ask: (target) => post(target, 'stripe', event('evt_t16', ',"x":"\\u0000"')),
    stored: ['evt_t16', 1],
  },
  {
    name: 'half a surrogate pair',
    expected: [200, 'quarantined'],
    ask: (target) => post(target, 'stripe', event('evt_t17', ',"x":"\\ud800"')),
    stored: ['evt_t17', 1],
  },
  {
    name: 'too many levels',
    expected: [200, 'quarantined'],
    ask: (target) => post(target, 'stripe', event('evt_t18', `,"x":${'['.repeat(40)}${']'.repeat(40)}`)),
    stored: ['evt_t18', 1],
  },
  {
    name: 'a number that doubles cannot hold',
    expected: [200, 'quarantined'],
    ask: (target) => post(target, 'stripe', event('evt_t19', ',"x":1e130000')),
    stored: ['evt_t19', 1],
  },
  {
    name: 'a test event at an endpoint for live ones',
    expected: [200, 'skipped'],
    ask: (target) => post(target, 'inline', event('evt_t_test', ',"livemode":false')),
    stored: ['evt_t_test', 1],
  },
  {
    name: 'an event of an account that is not ours',
    expected: [200, 'skipped'],
    ask: (target) => post(target, 'inline', event('evt_t_account', ',"livemode":true,"account":"acct_1"')),
    stored: ['evt_t_account', 1],
  },
  {
    name: 'an endpoint whose secret is not on the list, put there by hand',
    expected: [401, 'bad_signature'],
    ask: (target) => post(target, 'unlisted', event('evt_t_unlisted')),
    stored: ['evt_t_unlisted', 0],
  },
  {
    name: 'a new event',
    expected: [200, 'recorded'],
    ask: (target) => post(target, 'stripe', event('evt_t20', ',"pending_webhooks":2')),
    stored: ['evt_t20', 1],
  },
  {
    name: 'the same event',
    expected: [200, 'duplicate'],
    ask: (target) => post(target, 'stripe', event('evt_t20', ',"pending_webhooks":2')),
    stored: ['evt_t20', 1],
  },
  {
    name: 'the same event with another count of open deliveries',
    expected: [200, 'duplicate'],
    ask: (target) => post(target, 'stripe', event('evt_t20', ',"pending_webhooks":3')),
  },
  {
    name: 'the same id with another body',
    expected: [200, 'body_differs'],
    ask: (target) => post(target, 'stripe', event('evt_t20', ',"amount":1000000')),
    stored: ['evt_t20', 1],
  },
  {
    name: 'inline: a payment',
    expected: [200, 'processed'],
    ask: (target) => post(target, 'inline', paymentEvent('evt_t21')),
    stored: ['evt_t21', 1],
  },
  {
    name: 'inline: the same payment again',
    expected: [200, 'duplicate'],
    ask: (target) => post(target, 'inline', paymentEvent('evt_t21')),
  },
  {
    name: 'inline: a type without a handler',
    expected: [200, 'skipped'],
    ask: (target) => post(target, 'inline', event('evt_t22')),
    stored: ['evt_t22', 1],
  },
  {
    name: 'inline: a payment without a currency, which no retry can mend',
    expected: [500, 'processing_failed'],
    ask: (target) => post(target, 'inline', paymentEvent('evt_t23', { currency: null })),
    stored: ['evt_t23', 1],
  },
  {
    name: 'inline: the dead letter again',
    expected: [500, 'processing_failed'],
    ask: (target) => post(target, 'inline', paymentEvent('evt_t23', { currency: null })),
    stored: ['evt_t23', 1],
  },
  {
    name: 'a form of Twilio',
    expected: [200, 'recorded'],
    ask: (target) =>
      post(target, 'twilio', 'CallSid=CA1&CallStatus=completed&To=%2B491', {
        provider: 'twilio',
        secret: target.secrets.TWILIO_AUTH_TOKEN ?? '',
        headers: FORM,
      }),
  },
  {
    name: 'a form of Twilio with too many fields',
    expected: [400, 'invalid_json'],
    ask: ({ base }) =>
      ask(`${base}/twilio`, {
        method: 'POST',
        body: `CallSid=CA2&CallStatus=completed${'&a=b'.repeat(1_000)}`,
        headers: { ...FORM, 'x-twilio-signature': `${'A'.repeat(27)}=` },
      }),
    stored: ['call:CA2:completed', 0],
  },
  {
    name: 'a form that Twilio has signed for another host',
    expected: [401, 'bad_signature'],
    ask: async (target) => {
      const body = 'CallSid=CA3&CallStatus=completed';
      const asked = { method: 'POST', url: 'http://elsewhere.example/webhooks/twilio-anywhere' };
      const signed = await providerNamed('twilio')?.sign(
        { ...asked, body: new TextEncoder().encode(body) },
        target.secrets.TWILIO_AUTH_TOKEN ?? '',
        { port: nodeHmac, nowSec: nowSec() },
      );
      const headers = { ...FORM, ...signed, host: 'elsewhere.example' };
      return ask(`${target.base}/twilio-anywhere`, { method: 'POST', body, headers });
    },
    stored: ['call:CA3:completed', 0],
  },
  {
    name: 'a handshake with another token',
    expected: [403, 'handshake_refused'],
    ask: (target) => whatsapp(target, 'hub.mode=subscribe&hub.verify_token=x&hub.challenge=42'),
  },
];

/** Asks one row and checks status, word, shape and what was stored. */
export async function checkRow(row: Asked, target: Target): Promise<void> {
  const answer = await row.ask(target);
  const [status, word] = row.expected;
  if (status === 200) {
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.json.status, word);
    assert.deepEqual(Object.keys(answer.json), ['status', 'events']);
    assert.deepEqual(Object.keys(answer.json.events[0]), ['event_id', 'status']);
  } else {
    assertRefusal(answer, status, word);
    assert.doesNotMatch(answer.text, /whsec/);
    assert.equal(answer.headers['www-authenticate'], undefined, 'no token would help');
  }
  if (row.stored === undefined) return;
  const { rows } = await target.db2.query(
    'select count(*)::int as n from public.webhook_events where event_id = $1',
    [row.stored[0]],
  );
  assert.equal(rows[0].n, row.stored[1]);
}

/** What the table leaves behind, beside the answers. */
export async function checkTrace({ db2 }: Target): Promise<void> {
  const alarms = await db2.query(
    `select kind, convert_from(body, 'UTF8') as body from public.webhook_alarms where event_id = 'evt_t20'`,
  );
  assert.deepEqual(alarms.rows, [{ kind: 'body_differs', body: event('evt_t20', ',"amount":1000000') }]);
  const kept = await db2.query(
    `select e.status::text, e.error, encode(e.raw_body, 'hex') as raw_body, e.payload from public.webhook_events e
     where e.event_id like 'invalid:%' order by length(e.raw_body)`,
  );
  assert.deepEqual(
    kept.rows.map(({ status, error, payload }) => [status, error, payload]),
    [
      ['dead_letter', 'quarantine: invalid_utf8', null],
      ['dead_letter', 'quarantine: syntax', null],
      ['dead_letter', 'quarantine: byte_order_mark', null],
    ],
  );
  assert.equal(kept.rows[0]?.raw_body, '7bff7d');
}

export async function checkHandshake(target: Target): Promise<void> {
  const token = encodeURIComponent(target.secrets.WHATSAPP_VERIFY_TOKEN ?? '');
  const query = `hub.mode=subscribe&hub.verify_token=${token}&hub.challenge=1158201444`;
  const answer = await whatsapp(target, query);
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.text, '1158201444');
  assert.match(answer.headers['content-type'] ?? '', /^text\/plain/);
  const slack = await post(target, 'slack', '{"type":"url_verification","challenge":"3eZbrw1a"}', {
    provider: 'slack',
  });
  assert.deepEqual([slack.status, slack.text], [200, '3eZbrw1a']);
}
