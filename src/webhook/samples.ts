// Sample events, one shape per provider: for `sluice webhooks send`, the docs and the tests. A sample depends on nothing but
// its order, so the same order makes the same bytes, and sending it twice is a redelivery.

export interface SampleOrder {
  /** The provider's name for what happened, as it is stored: `payment_intent.succeeded`, `call.completed`. */
  readonly type: string;
  readonly eventId: string;
  readonly user: string;
  /** In minor units. */
  readonly amount: number;
  readonly atSec: number;
}

export interface Sample {
  readonly body: string;
  readonly contentType: string;
  /** Headers that the provider sends besides the signature. */
  readonly headers: Readonly<Record<string, string>>;
}

type Fields = Record<string, unknown>;

const FORM = 'application/x-www-form-urlencoded';

/** A type of each provider that has samples, for help pages. */
export const SAMPLE_TYPES: Readonly<Record<string, readonly string[]>> = {
  stripe: ['payment_intent.succeeded', 'charge.refunded', 'charge.dispute.created'],
  twilio: ['call.completed', 'message.delivered', 'recording.completed'],
  whatsapp: ['message.text', 'status.delivered'],
  daily: ['meeting.ended', 'recording.ready-to-download'],
  github: ['issues.opened'],
  shopify: ['orders/create'],
  slack: ['app_mention'],
  standard: ['user.created'],
};

const MAKERS: Record<string, (order: SampleOrder) => Sample> = {
  stripe: (order) =>
    json({
      id: order.eventId,
      object: 'event',
      type: order.type,
      created: order.atSec,
      pending_webhooks: 1,
      data: { object: stripeObject(order) },
    }),
  twilio: ({ type, eventId, user, atSec }) => {
    const [kind = '', status = ''] = split(type, '.');
    const [sid, statusName] = TWILIO_NAMES[kind] ?? ['CallSid', 'CallStatus'];
    const Timestamp = new Date(atSec * 1_000).toUTCString();
    return form({ [sid]: eventId, [statusName]: status, From: user, To: '+18005551212', Timestamp });
  },
  whatsapp: ({ type, eventId: id, user, atSec }) => {
    const [kind = '', detail = ''] = split(type, '.');
    const timestamp = String(atSec);
    const update =
      kind === 'status'
        ? { statuses: [{ id, status: detail, timestamp, recipient_id: user }] }
        : { messages: [{ id, from: user, timestamp, type: detail, [detail]: { body: 'Hello' } }] };
    const metadata = { display_phone_number: '15550001111', phone_number_id: '106540352242922' };
    const value = { messaging_product: 'whatsapp', metadata, ...update };
    const entry = { id: '102290129340398', changes: [{ field: 'messages', value }] };
    return json({ object: 'whatsapp_business_account', entry: [entry] });
  },
  daily: ({ type, eventId: id, user, atSec: event_ts }) =>
    json({ version: '1.0.0', type, id, payload: { meeting_id: `m_${id}`, room: 'demo', user }, event_ts }),
  github: ({ type, eventId, user }) => {
    const [event = '', action] = split(type, '.');
    const headers = { 'x-github-delivery': eventId, 'x-github-event': event };
    return json({ ...(action && { action }), delivery: eventId, sender: { login: user } }, headers);
  },
  shopify: ({ type, eventId, user, amount, atSec }) =>
    json(
      {
        id: eventId,
        email: `${user}@example.com`,
        total_price: (amount / 100).toFixed(2),
        updated_at: new Date(atSec * 1_000).toISOString(),
      },
      { 'x-shopify-event-id': eventId, 'x-shopify-topic': type },
    ),
  slack: ({ type, eventId: event_id, user, atSec: event_time }) =>
    json({ type: 'event_callback', event_id, event_time, event: { type, user, text: 'Hello' } }),
  standard: ({ type, eventId: id, user, atSec }) =>
    json({ type, timestamp: new Date(atSec * 1_000).toISOString(), data: { id, user } }),
};

const TWILIO_NAMES: Record<string, readonly [sid: string, status: string]> = {
  call: ['CallSid', 'CallStatus'],
  message: ['MessageSid', 'MessageStatus'],
  recording: ['RecordingSid', 'RecordingStatus'],
};

/** Undefined where there are no samples of this provider. */
export function sampleOf(provider: string, order: SampleOrder): Sample | undefined {
  return Object.hasOwn(MAKERS, provider) ? MAKERS[provider]?.(order) : undefined;
}

/** The object an event is about. Each event is about a payment of its own, named after it. */
function stripeObject({ type, eventId, user, amount }: SampleOrder): Fields {
  const name = eventId.replace(/^evt_/, '');
  const money = { amount, currency: 'eur', metadata: { user_id: user } };
  const ofPayment = { ...money, payment_intent: `pi_${name}` };
  if (type.startsWith('payment_intent.'))
    return { id: `pi_${name}`, object: 'payment_intent', amount_received: amount, ...money };
  if (type.startsWith('charge.dispute.')) return { id: `dp_${name}`, object: 'dispute', ...ofPayment };
  if (type.startsWith('refund.'))
    return { id: `re_${name}`, object: 'refund', status: 'succeeded', ...ofPayment };
  if (type.startsWith('checkout.session.')) {
    const paid = { payment_status: 'paid', amount_total: amount };
    return { id: `cs_${name}`, object: 'checkout.session', ...paid, ...ofPayment };
  }
  if (type.startsWith('invoice.'))
    return { id: `in_${name}`, object: 'invoice', amount_paid: amount, ...ofPayment };
  const refunded = type === 'charge.refunded' ? amount : 0;
  return { id: `ch_${name}`, object: 'charge', amount_refunded: refunded, ...ofPayment };
}

function json(fields: Fields, headers: Record<string, string> = {}): Sample {
  return { body: JSON.stringify(fields), contentType: 'application/json', headers };
}

function form(fields: Record<string, string>): Sample {
  return { body: new URLSearchParams(fields).toString(), contentType: FORM, headers: {} };
}

/** At the first mark only: Daily's and Twilio's statuses may hold more of them. */
function split(text: string, mark: string): string[] {
  const at = text.indexOf(mark);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + mark.length)];
}
