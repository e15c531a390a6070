// `sluice calls send`: signs a sample call event as a site would and posts it to a running server.

import { randomInt } from 'node:crypto';
import { SIGNATURE_HEADER, SITE_HEADER, signCall, TIMESTAMP_HEADER } from '#core/calls/signature.ts';
import { nodeHmac } from '../webhook/hmac.ts';
import { action, UsageError, type Values } from './grammar.ts';
import { OPTION, readStackEnv } from './operator.ts';
import { asJson, need, post, serverUrl } from './send.ts';
import { readUrl } from './values.ts';

const MAX_COUNT = 1_000;
const MS_PER_SEC = 1_000;
const SAMPLE_NUMBERS = 1_000_000_000;

const OPTIONS = {
  to: { value: 'URL', about: 'where to (default: /call-events on the running server)' },
  site: { value: 'SITE', about: 'as whom (default: OPS_SITE_ID)' },
  secret: { value: 'SECRET', about: 'what to sign with (default: OPS_SITE_SECRET)' },
  kind: { value: 'KIND', default: 'ring', about: 'the kind of the event' },
  'event-id': { value: 'ID', about: "the sender's own id (default: none)" },
  payload: { value: 'JSON', about: 'an object (default: {"sample":true} and a number that makes it new)' },
  count: {
    range: [1, MAX_COUNT],
    default: 1,
    about: 'the very same request so many times: all but the first are a noop',
  },
  json: OPTION.json,
} as const;

async function run({ count, json, ...values }: Values<typeof OPTIONS>): Promise<number> {
  const env = readStackEnv(process.env);
  const site = values.site ?? need('OPS_SITE_ID', '--site', env);
  const secret = values.secret ?? need('OPS_SITE_SECRET', '--secret', env);
  const url = values.to === undefined ? serverUrl(env, '/call-events') : readUrl('--to', values.to);
  const request = await signedRequest(site, secret, {
    ...(values['event-id'] !== undefined && { event_id: values['event-id'] }),
    kind: values.kind,
    occurred_at: new Date().toISOString(),
    payload: readPayload(values.payload),
  });
  let refusals = 0;
  for (let sent = 0; sent < count; sent++) {
    const { status, text } = await post(url, request);
    const isTaken = status === 200;
    if (!isTaken) refusals++;
    const say = isTaken || json ? console.log : console.error;
    say(json ? JSON.stringify({ status, answer: asJson(text) }) : `${status}  ${text}`);
  }
  return refusals === 0 ? 0 : 1;
}

async function signedRequest(site: string, secret: string, event: unknown): Promise<RequestInit> {
  const body = new TextEncoder().encode(JSON.stringify(event));
  const timestamp = String(Math.floor(Date.now() / MS_PER_SEC));
  const headers = {
    'content-type': 'application/json',
    [SITE_HEADER]: site,
    [TIMESTAMP_HEADER]: timestamp,
    [SIGNATURE_HEADER]: await signCall({ site, timestamp, body }, secret, nodeHmac),
  };
  return { headers, body };
}

function readPayload(text: string | undefined): unknown {
  if (text === undefined) return { sample: true, number: randomInt(SAMPLE_NUMBERS) };
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(
      `--payload is not JSON such as {"line":7}: ${error instanceof Error ? error.message : ''}`,
    );
  }
}

export const send = action({
  about: 'Sign a sample call event and post it',
  options: OPTIONS,
  environment: {
    'SLUICE_URL, OPS_SITE_ID, OPS_SITE_SECRET':
      'the server, the site and its secret (default: those of the stack in .sluice)',
  },
  exits: ['when every answer was 200', 'when one was not'],
  examples: ['sluice calls send --count 3'],
  run,
});
