// `sluice webhooks send`: signs a sample event as its provider would and posts it to a running server.

import { randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import { providerNamed } from '#core/webhook/providers.ts';
import { StackError } from '../failure.ts';
import { nodeHmac } from '../webhook/hmac.ts';
import { SAMPLE_TYPES, type SampleOrder, sampleOf } from '../webhook/samples.ts';
import { readStackEnv } from './operator.ts';
import { UsageError } from './usage_error.ts';

export const usage = `sluice webhooks send <provider> <type> [options]

Signs a sample event as the provider would and posts it.

Providers, and some of the types they send:
${Object.entries(SAMPLE_TYPES)
  .map(([name, types]) => `  ${name.padEnd(9)} ${types.join(', ')}`)
  .join('\n')}

Options:
  --to URL         where to (default: the endpoint of the provider's name on the running server)
  --secret S       what to sign with (default: the demo secret of the running stack)
  --user U         whom it is about (default: user_1)
  --amount N       in minor units (default: 1000)
  --event-id ID    a name of your own: sending it again is a redelivery (default: a new one each time)
  --count N        so many, at most 10000: new events, or with --event-id the same one again
  --json           for machines

Exit code: 0 when every answer was 2xx, 1 when one was not, 2 when the call was not understood.

Examples:
  sluice webhooks send stripe payment_intent.succeeded --user ann --amount 2500
  sluice webhooks send twilio call.completed --event-id CA1 --count 2
`;

const OPTIONS = {
  to: { type: 'string' },
  secret: { type: 'string' },
  user: { type: 'string', default: 'user_1' },
  amount: { type: 'string', default: '1000' },
  'event-id': { type: 'string' },
  count: { type: 'string', default: '1' },
  json: { type: 'boolean', default: false },
} as const;

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
const TIMEOUT_MS = 30_000;

interface Sent {
  readonly event_id: string;
  readonly status: number;
  readonly answer: unknown;
}

export async function run(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  const [provider, type, ...more] = positionals;
  if (provider === undefined || type === undefined || more.length > 0)
    throw new UsageError('say which provider and which type');
  if (!Object.hasOwn(SAMPLE_TYPES, provider))
    throw new UsageError(`there is no sample of ${provider}; of ${Object.keys(SAMPLE_TYPES).join(', ')}`);
  const amount = readNumber('--amount', values.amount, AMOUNT_MAX);
  const count = readNumber('--count', values.count, COUNT_MAX);
  const env = readStackEnv(process.env);
  const secret = values.secret ?? env[SECRET_NAMES[provider] ?? ''];
  if (!secret)
    throw new StackError(`no secret to sign as ${provider} with`, 'give --secret, or run `npm start`');
  const url = values.to ?? `${serverFrom(env).replace(/\/+$/, '')}/webhooks/${provider}`;
  let failures = 0;
  for (let index = 0; index < count; index++) {
    const eventId = values['event-id'] ?? `${ID_PREFIXES[provider] ?? ''}${randomBytes(12).toString('hex')}`;
    const atSec = values['event-id'] === undefined ? Math.floor(Date.now() / 1_000) : NAMED_AT_SEC;
    const sent = await send(provider, { type, eventId, user: values.user, amount, atSec }, secret, url);
    const isTaken = sent.status >= 200 && sent.status < 300;
    if (!isTaken) failures++;
    const line = values.json ? JSON.stringify(sent) : lineOf(sent);
    if (isTaken || values.json) console.log(line);
    else console.error(line);
  }
  return failures === 0 ? 0 : 1;
}

async function send(provider: string, order: SampleOrder, secret: string, url: string): Promise<Sent> {
  const sample = sampleOf(provider, order);
  if (sample === undefined) throw new UsageError(`there is no sample of ${provider}`);
  const asked = { method: 'POST', url, body: Buffer.from(sample.body) };
  const context = { port: nodeHmac, nowSec: Math.floor(Date.now() / 1_000) };
  const signed = await providerNamed(provider)?.sign(asked, secret, context);
  let response: Response;
  let text: string;
  try {
    response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': sample.contentType, ...sample.headers, ...signed },
      body: sample.body,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    text = await response.text();
  } catch (error) {
    throw new StackError(
      `no server answers at ${url}`,
      'is it running? --to or SLUICE_URL says where',
      error,
    );
  }
  return { event_id: order.eventId, status: response.status, answer: parsed(text) };
}

function lineOf({ event_id, status, answer }: Sent): string {
  const { status: outcome, error } = (answer ?? {}) as {
    status?: string;
    error?: { message?: string; hint?: string };
  };
  if (error !== undefined) return `${event_id}  ${status}  ${error.message ?? ''} ${error.hint ?? ''}`.trim();
  return `${event_id}  ${status}  ${outcome ?? ''}`.trim();
}

/** Text where the answer is no JSON: somebody else answers there. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function serverFrom(env: NodeJS.ProcessEnv): string {
  const url = env.SLUICE_URL;
  if (!url)
    throw new StackError('SLUICE_URL is not set, and no stack runs here', 'give --to, or `npm start`');
  return url;
}

function readNumber(name: string, text: string, max: number): number {
  if (/^[1-9]\d{0,12}$/.test(text) && Number(text) <= max) return Number(text);
  throw new UsageError(`${name} is "${text}"; it must be a whole number from 1 to ${max}`);
}
