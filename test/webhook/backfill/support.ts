// What suites about backfill share: events, calls and messages as the providers keep them, and keys for their stand-ins.

import type { SentEvent } from '../../../src/stripe_stand_in/books.ts';
import type { StripeKey } from '../../../src/stripe_stand_in/rights.ts';
import { StripeStandIn } from '../../../src/stripe_stand_in/stand_in.ts';
import { runHere } from '../../cli/support.ts';
import { type TwilioCall, type TwilioMessage, TwilioStandIn } from '../../support/stand_ins/twilio.ts';

export const ACCOUNT = `AC${'1'.repeat(32)}`;
export const TWILIO_KEY = `SK${'2'.repeat(32)}:${'3'.repeat(32)}`;
export const STRIPE_KEY = 'rk_live_all_0123456789';
export const KEYS: Record<string, StripeKey> = {
  [STRIPE_KEY]: { rights: ['event_read', 'charge_read', 'dispute_read'], accounts: ['acct_connected'] },
  rk_live_no_disputes_0123456789: { rights: ['event_read', 'charge_read'], accounts: ['acct_connected'] },
  rk_live_nothing_0123456789: { rights: [] },
};

type Change = Partial<Omit<SentEvent, 'id' | 'data'>> & { object?: Record<string, unknown> };

/** A payment that succeeded, of 100 euro cents and of user ann, unless `change` says otherwise. */
export function stripeEvent(id: string, { object, ...change }: Change = {}): SentEvent {
  return {
    id,
    type: 'payment_intent.succeeded',
    created: Math.floor(Date.now() / 1_000),
    livemode: true,
    api_version: '2025-03-31.basil',
    ...change,
    data: {
      object: {
        id: `pi_${id}`,
        object: 'payment_intent',
        amount: 100,
        amount_received: 100,
        currency: 'eur',
        metadata: { user_id: 'ann' },
        ...object,
      },
    },
  };
}

/** As Stripe would deliver it. */
export function deliveryOf(event: SentEvent): string {
  return JSON.stringify({ pending_webhooks: 1, object: 'event', ...event });
}

export function call(sid: string, change: Partial<TwilioCall> = {}): TwilioCall {
  const numbers = { from: '+14158675309', to: '+18005551212', direction: 'inbound' };
  return {
    sid,
    account_sid: ACCOUNT,
    status: 'completed',
    ...numbers,
    duration: '63',
    end: new Date(),
    ...change,
  };
}

export function message(sid: string, change: Partial<TwilioMessage> = {}): TwilioMessage {
  const content = { from: '+14158675309', to: '+18005551212', body: 'hello', direction: 'outbound-api' };
  const now = new Date();
  return { sid, account_sid: ACCOUNT, status: 'delivered', ...content, changed: now, sent: now, ...change };
}

/** The form of the callback that Twilio sends about it. */
export function callbackOf({ sid, account_sid, status, from, to, duration, end }: TwilioCall): string {
  return new URLSearchParams({
    AccountSid: account_sid,
    ApiVersion: '2010-04-01',
    CallDuration: duration ?? '',
    CallSid: sid,
    CallStatus: status,
    CallbackSource: 'call-progress-events',
    From: from,
    SequenceNumber: '3',
    Timestamp: (end ?? new Date()).toUTCString(),
    To: to,
  }).toString();
}

export function messageCallbackOf({ sid, account_sid, status, from, to }: TwilioMessage): string {
  const fields = { AccountSid: account_sid, From: from, MessageSid: sid, MessageStatus: status, SmsSid: sid };
  return new URLSearchParams({ ...fields, SmsStatus: status, To: to }).toString();
}

export interface Providers {
  stripe: StripeStandIn;
  twilio: TwilioStandIn;
  stop(): Promise<void>;
}

export async function startProviders(): Promise<Providers> {
  const stripe = await StripeStandIn.start({ keys: KEYS });
  const twilio = await TwilioStandIn.start({ [TWILIO_KEY]: [ACCOUNT] });
  return {
    stripe,
    twilio,
    async stop() {
      await Promise.all([stripe.server.stop(), twilio.server.stop()]);
    },
  };
}

/** What a command that asks the stand-ins needs in its environment. */
export function envFor({ stripe, twilio }: Providers, db2Url: string): Record<string, string> {
  return {
    DB2_URL: db2Url,
    STRIPE_API_KEY: STRIPE_KEY,
    STRIPE_API_URL: stripe.url,
    TWILIO_API_KEY: TWILIO_KEY,
    TWILIO_API_URL: twilio.url,
    USER: 'ann',
    SLUICE_DIR: '/nonexistent',
  };
}

export const hourAgo = (): string => new Date(Date.now() - 3_600_000).toISOString();

/** `sluice webhooks backfill … --json`, of the last hour unless `words` say otherwise. */
export async function backfill(env: Record<string, string>, endpoint: string, ...words: string[]) {
  const since = words.includes('--since') ? [] : ['--since', hourAgo()];
  const answer = await runHere(['webhooks', 'backfill', endpoint, ...since, ...words, '--json'], env);
  const counts = answer.stdout === '' ? {} : JSON.parse(answer.stdout);
  return { ...answer, counts: pick(counts, ['asked', 'known', 'new', 'skipped']) };
}

function pick(from: Record<string, number>, names: readonly string[]): Record<string, number | undefined> {
  return Object.fromEntries(names.map((name) => [name, from[name]]));
}
