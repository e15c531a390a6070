// Every type of event that the official package declares: none is buried. And the page about Stripe says what the tables say.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type Stripe from 'stripe';
import { PROJECT } from '../support/dev.ts';
import { WebhookWorld } from './world.ts';

const PAGE = join(PROJECT, 'docs', 'integrations', 'stripe.md');
const TYPES_MIN = 270;
const THIN_TYPES_MIN = 300;
const THIN_PAYMENT_TYPES_MIN = 20;

const declarations = (path: string): string =>
  readFileSync(join(PROJECT, 'node_modules/stripe/esm/resources', path), 'utf8');

/** Each type of a thin event: it names its object, and does not carry it. */
function declaredThinTypes(): string[] {
  const found = declarations('V2/Core/Events.d.ts').matchAll(/^ {4}type: '(v[12]\.[^']+)';/gm);
  return [...new Set([...found].map(([, type = '']) => type))];
}

/** Each type of event with the name of its object's type, as the package declares them. */
function declaredTypes(): { type: string; object: string }[] {
  const text = declarations('Events.d.ts');
  const one = /interface \w+Event extends EventBase \{\s+type: '([^']+)';[\s\S]*?object: ([\w.| ]+);/g;
  return [...text.matchAll(one)].map(([, type = '', object = '']) => ({ type, object }));
}

/**
 * Types of objects that tell of payments and have no rule, each looked at: what they tell moves no money of a buyer. A new
 * version of the package that declares more makes the test fail, so that they are looked at too.
 */
const MOVES_NOTHING = [
  // No more than a hold that ends: nothing was captured.
  'charge.expired',
  'checkout.session.expired',
  // An invoice on its way: its payments tell what was paid.
  ...[
    'created',
    'deleted',
    'finalization_failed',
    'finalized',
    'marked_uncollectible',
    'overdue',
    'overpaid',
  ].map((name) => `invoice.${name}`),
  ...[
    'payment_action_required',
    'payment_attempt_required',
    'payment_failed',
    'sent',
    'upcoming',
    'updated',
  ].map((name) => `invoice.${name}`),
  ...['voided', 'will_be_due'].map((name) => `invoice.${name}`),
  // A hold that can be captured, and money in the customer's cash balance: neither is captured yet.
  'payment_intent.amount_capturable_updated',
  'payment_intent.partially_funded',
];

const MONEY = { amount: 1000, currency: 'usd' };

/** The least of an object that tells of a payment; of every other type what most objects have. */
function objectOf(type: string, name: string, key: string): Record<string, unknown> {
  const payment = { charge: `ch_${key}`, payment_intent: `pi_${key}` };
  const shapes: Record<string, Record<string, unknown>> = {
    PaymentIntent: {
      id: `pi_${key}`,
      ...MONEY,
      amount_received: 1000,
    } satisfies Partial<Stripe.PaymentIntent>,
    Charge: {
      ...{ id: `ch_${key}`, payment_intent: `pi_${key}`, ...MONEY, status: 'succeeded', captured: true },
      ...{ amount_captured: 1000, amount_refunded: type === 'charge.refunded' ? 1000 : 0 },
    } satisfies Partial<Stripe.Charge>,
    Refund: { id: `re_${key}`, ...payment, ...MONEY, status: 'succeeded' } satisfies Partial<Stripe.Refund>,
    Dispute: {
      ...{ id: `dp_${key}`, ...payment, ...MONEY, status: 'prevented' as const, balance_transactions: [] },
    } satisfies Partial<Stripe.Dispute>,
    Session: {
      ...{ id: `cs_${key}`, payment_intent: `pi_${key}`, payment_status: 'paid' as const },
      ...{ amount_total: 1000, currency: 'usd' },
    } satisfies Partial<Stripe.Checkout.Session>,
    Invoice: { id: `in_${key}`, amount_paid: 1000, currency: 'usd' } satisfies Partial<Stripe.Invoice>,
    InvoicePayment: {
      ...{ id: `inpay_${key}`, amount_paid: 1000, currency: 'usd', status: 'paid' },
      payment: { type: 'payment_intent', payment_intent: `pi_${key}` },
    } satisfies Partial<Stripe.InvoicePayment>,
  };
  return shapes[name.split('.').at(-1) ?? ''] ?? { id: `x_${key}`, ...MONEY, status: 'active' };
}

describe('events of Stripe', () => {
  let world: WebhookWorld;
  const types = declaredTypes();
  before(async () => {
    world = await WebhookWorld.start();
    await world.addEndpoint('queued', 'stripe', 'queued');
  });
  after(() => world?.stop());

  test('of every declared type end as done or skipped for a listed reason, with and without a user', async () => {
    assert.ok(types.length > TYPES_MIN, `only ${types.length} types were found`);
    const bodies = types.flatMap(({ type, object }, at) =>
      [{ user_id: 'ann' }, {}, null].map((metadata, way) => {
        const key = `${at}_${way}`;
        const data = { object: { object: 'thing', metadata, ...objectOf(type, object, key) } };
        return JSON.stringify({ id: `evt_${key}`, object: 'event', type, created: 1_790_000_000, data });
      }),
    );
    // As thin as a payload can be.
    bodies.push(
      JSON.stringify({ id: 'evt_thin', object: 'event', type: 'charge.succeeded', created: 1_790_000_000 }),
    );
    for (const body of bodies) assert.equal((await world.send('queued', 'stripe', body)).status, 200, body);
    await world.process();
    const ends = await world.rows<{ how: string }>(
      `select distinct concat_ws(': ', e.status, e.error) as how from public.webhook_events e
       where e.status <> 'success' and e.error is distinct from 'no handler for ' || e.event_type
         and e.error not in (select unnest(enum_range(null::webhook.skip_reason))::text)`,
    );
    assert.deepEqual(ends, []);
    const [{ events } = { events: 0 }] = await world.rows<{ events: number }>(
      `select count(*)::int as events from public.webhook_events where status in ('success', 'skipped')`,
    );
    assert.equal(events, bodies.length);
  });

  test('that are thin wait for a worker that may ask Stripe where they are about payments, and are skipped elsewhere', async () => {
    const thin = declaredThinTypes();
    assert.ok(thin.length > THIN_TYPES_MIN, `only ${thin.length} types were found`);
    const created = '2026-02-24T10:00:00.123Z';
    for (const [at, type] of thin.entries()) {
      const about = { id: `x_${at}`, type: 'thing', url: `/v1/things/x_${at}` };
      const head = { id: `evt_thin_${at}`, object: 'v2.core.event', type, livemode: true, created };
      const body = JSON.stringify({ ...head, context: null, related_object: about, reason: null });
      assert.equal((await world.send('queued', 'stripe', body)).status, 200, body);
    }
    await world.process();
    const ruled = await world.rows<{ type: string }>(
      `select distinct 'v1.' || event_type as type from public.payment_rules`,
    );
    const waiting = new Set(ruled.map(({ type }) => type).filter((type) => thin.includes(type)));
    assert.ok(waiting.size > THIN_PAYMENT_TYPES_MIN, `only ${waiting.size} types are about payments`);
    const ends = await world.rows<{ event_type: string; status: string; error: string }>(
      `select e.event_type, e.status::text, e.error from public.webhook_events e where e.event_id like 'evt_thin\\_%'`,
    );
    assert.equal(ends.length, thin.length);
    for (const { event_type: type, status, error } of ends)
      assert.deepEqual(
        [status, error],
        waiting.has(type) ? ['pending', null] : ['skipped', `no handler for ${type}`],
        type,
      );
  });

  test('that tell of payments have a rule, or were looked at and move nothing', async () => {
    const ruled = await world.rows<{ event_type: string }>(
      'select distinct event_type from public.payment_rules',
    );
    const known = new Set(ruled.map(({ event_type }) => event_type));
    const family = /^(payment_intent|charge|refund|checkout\.session|invoice|invoice_payment)\./;
    const open = types.map(({ type }) => type).filter((type) => family.test(type) && !known.has(type));
    assert.deepEqual(open.sort(), MOVES_NOTHING.toSorted());
    const declared = new Set(types.map(({ type }) => type));
    assert.deepEqual(
      [...known].filter((type) => !declared.has(type)),
      [],
    );
  });

  test('without a user leave their money on the list of those that wait', async () => {
    const [row] = await world.rows<{ waiting: number; credited: number }>(
      `select (select count(*)::int from webhook.payments_without_user(1000)) as waiting,
         (select count(*)::int from public.credit_ledger) as credited`,
    );
    assert.ok(row && row.waiting > 0 && row.credited > 0, JSON.stringify(row));
  });

  /** The lines between two marks of the page; UPDATE_GOLDEN=1 writes them. */
  function comparePage(mark: string, want: string): void {
    const [begin, end] = [`<!-- ${mark}: begin -->\n`, `<!-- ${mark}: end -->`];
    const page = readFileSync(PAGE, 'utf8');
    const [head, rest = ''] = page.split(begin);
    const [have, tail] = rest.split(end);
    if (process.env.UPDATE_GOLDEN === '1') writeFileSync(PAGE, `${head}${begin}${want}${end}${tail}`);
    else assert.equal(have, want, `${PAGE} differs: UPDATE_GOLDEN=1 writes the table`);
  }

  test('move money by the rules that the page prints', async () => {
    const rows = await world.rows<{ line: string }>(
      `select format('| %s | %s | %s | %s | %s |',
         string_agg('\`' || r.event_type || '\`', ', ' order by r.event_type collate "C"),
         case when r.given = '{}' then '' else '\`' || r.given::text || '\`' end, coalesce(r.state::text, '-'), coalesce(r.fact, '-'),
         coalesce('\`' || array_to_string(r.amount_fields, '\`, else \`') || '\`', '-')) as line
       from public.payment_rules r
       group by r.given, r.state, r.fact, r.amount_fields, r.names_user
       order by r.fact nulls last, r.state, r.given, min(r.event_type collate "C")`,
    );
    const head = '| events | where the object has | state | money | read from |\n|---|---|---|---|---|\n';
    comparePage('money rules', `${head}${rows.map(({ line }) => `${line}\n`).join('')}`);
  });

  test('are skipped for the reasons that the page explains', async () => {
    const rows = await world.rows<{ reason: string }>(
      'select unnest(enum_range(null::webhook.skip_reason))::text as reason',
    );
    const page = readFileSync(PAGE, 'utf8');
    const [, list = ''] = page.split('### Why an event is skipped\n');
    const explained = [...list.matchAll(/^\| `([^`]+)` \|/gm)].map(([, reason]) => reason);
    assert.deepEqual(
      explained.slice(0, rows.length),
      rows.map(({ reason }) => reason),
    );
  });
});
