// `sluice webhooks send`: signs a sample event as its provider would and posts it to a running server.

import { randomBytes } from 'node:crypto';
import { providerNamed } from '#core/webhook/providers.ts';
import { nodeHmac } from '../webhook/hmac.ts';
import { SAMPLE_TYPES, type SampleOrder, sampleOf } from '../webhook/samples.ts';
import { action, UsageError, type Values } from './grammar.ts';
import { OPTION, readStackEnv } from './operator.ts';
import { asJson, need, post, serverUrl } from './send.ts';
import { readUrl } from './values.ts';

/** Where the secrets of the demo endpoints are, in the environment or in .sluice/env. */
const SECRET_NAMES: Record<string, string> = {
  stripe: 'STRIPE_WEBHOOK_SECRET',
  twilio: 'TWILIO_AUTH_TOKEN',
  whatsapp: 'WHATSAPP_APP_SECRET',
  daily: 'DAILY_WEBHOOK_SECRET',
};
/** How ids of the provider begin. */
const ID_PREFIXES: Record<string, string> = { stripe: 'evt_', twilio: 'CA', whatsapp: 'wamid.' };
/** When an event with a name of its own happened: 2026-01-01, always, so that the next one has the same bytes. */
const NAMED_AT_SEC = 1_767_225_600;
const COUNT_MAX = 10_000;
const AMOUNT_MAX = 1_000_000_000_000;

interface Sent {
  readonly event_id: string;
  readonly status: number;
  readonly answer: unknown;
}

const OPTIONS = {
  to: {
    value: 'URL',
    about: "where to (default: the endpoint of the provider's name on the running server)",
  },
  secret: { value: 'SECRET', about: 'what to sign with (default: the demo secret of the running stack)' },
  user: { value: 'USER', default: 'user_1', about: 'whom it is about' },
  amount: { range: [1, AMOUNT_MAX], default: 1_000, about: 'in minor units' },
  'event-id': {
    value: 'ID',
    about: 'a name of your own: sending it again is a redelivery (default: a new one each time)',
  },
  count: {
    range: [1, COUNT_MAX],
    default: 1,
    about: 'how many: new events, or with --event-id the same one again',
  },
  json: OPTION.json,
} as const;

async function run(
  { to, user, amount, count, json, ...values }: Values<typeof OPTIONS>,
  [provider, type]: [string, string],
): Promise<number> {
  const env = readStackEnv(process.env);
  const secret = values.secret ?? need(SECRET_NAMES[provider] ?? '', '--secret', env);
  const url = to === undefined ? serverUrl(env, `/webhooks/${provider}`) : readUrl('--to', to);
  let failures = 0;
  for (let index = 0; index < count; index++) {
    const eventId = values['event-id'] ?? `${ID_PREFIXES[provider] ?? ''}${randomBytes(12).toString('hex')}`;
    const atSec = values['event-id'] === undefined ? Math.floor(Date.now() / 1_000) : NAMED_AT_SEC;
    const sent = await sendOne(provider, { type, eventId, user, amount, atSec }, secret, url);
    const isTaken = sent.status >= 200 && sent.status < 300;
    if (!isTaken) failures++;
    const say = isTaken || json ? console.log : console.error;
    say(json ? JSON.stringify(sent) : lineOf(sent));
  }
  return failures === 0 ? 0 : 1;
}

async function sendOne(provider: string, order: SampleOrder, secret: string, url: string): Promise<Sent> {
  const sample = sampleOf(provider, order);
  if (sample === undefined) throw new UsageError(`${provider} has no sample event`);
  const asked = { method: 'POST', url, body: Buffer.from(sample.body) };
  const context = { port: nodeHmac, nowSec: Math.floor(Date.now() / 1_000) };
  const signed = await providerNamed(provider)?.sign(asked, secret, context);
  const headers = { 'content-type': sample.contentType, ...sample.headers, ...signed };
  const { status, text } = await post(url, { headers, body: sample.body });
  return { event_id: order.eventId, status, answer: asJson(text) };
}

function lineOf({ event_id, status, answer }: Sent): string {
  const { status: outcome, error } = (answer ?? {}) as {
    status?: string;
    error?: { message?: string; hint?: string };
  };
  if (error !== undefined) return `${event_id}  ${status}  ${error.message ?? ''} ${error.hint ?? ''}`.trim();
  return `${event_id}  ${status}  ${outcome ?? ''}`.trim();
}

export const send = action({
  about: `Sign a sample event as its provider would and post it

Providers, and some of the types they send:

${Object.entries(SAMPLE_TYPES)
  .map(([name, types]) => `  ${name.padEnd(9)} ${types.join(', ')}`)
  .join('\n')}`,
  args: '<provider> <type>',
  choices: Object.keys(SAMPLE_TYPES),
  options: OPTIONS,
  environment: { SLUICE_URL: 'the server (default: that of the stack in .sluice)' },
  exits: ['when every answer was 2xx', 'when one was not'],
  examples: [
    'sluice webhooks send stripe payment_intent.succeeded --user ann --amount 2500',
    'sluice webhooks send twilio call.completed --event-id CA1 --count 2',
  ],
  run,
});
