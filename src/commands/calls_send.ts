// `sluice calls send`: signs a sample call event as a site would and posts it to a running server.

import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { SIGNATURE_HEADER, SITE_HEADER, signCall, TIMESTAMP_HEADER } from '#core/calls/signature.ts';
import { StackError } from '../failure.ts';
import { nodeHmac } from '../webhook/hmac.ts';
import { readStackEnv } from './operator.ts';
import { UsageError } from './usage_error.ts';

const OPTIONS = {
  to: { type: 'string' },
  site: { type: 'string' },
  secret: { type: 'string' },
  kind: { type: 'string', default: 'ring' },
  'event-id': { type: 'string' },
  payload: { type: 'string' },
  count: { type: 'string', default: '1' },
  json: { type: 'boolean', default: false },
} as const;

const MAX_COUNT = 1_000;
const MS_PER_SEC = 1_000;
const TIMEOUT_MS = 30_000;
const SAMPLE_NUMBERS = 1_000_000_000;

interface Answer {
  status: number;
  text: string;
}

export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: OPTIONS });
  if (!/^[1-9]\d{0,3}$/.test(values.count) || Number(values.count) > MAX_COUNT)
    throw new UsageError(`--count is "${values.count}"; it must be a number from 1 to ${MAX_COUNT}`);
  const env = readStackEnv(process.env);
  const site = values.site ?? need('OPS_SITE_ID', '--site', env);
  const secret = values.secret ?? need('OPS_SITE_SECRET', '--secret', env);
  const url = values.to ?? `${need('SLUICE_URL', '--to', env).replace(/\/+$/, '')}/call-events`;
  const request = await signedRequest(site, secret, {
    ...(values['event-id'] !== undefined && { event_id: values['event-id'] }),
    kind: values.kind,
    occurred_at: new Date().toISOString(),
    payload: readPayload(values.payload),
  });
  let refusals = 0;
  for (let sent = 0; sent < Number(values.count); sent++) {
    const { status, text } = await post(url, request);
    const isTaken = status === 200;
    if (!isTaken) refusals++;
    const say = isTaken || values.json ? console.log : console.error;
    say(values.json ? JSON.stringify({ status, answer: asJson(text) }) : `${status}  ${text}`);
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
  return { method: 'POST', headers, body };
}

async function post(url: string, request: RequestInit): Promise<Answer> {
  try {
    const response = await fetch(url, { ...request, signal: AbortSignal.timeout(TIMEOUT_MS) });
    return { status: response.status, text: await response.text() };
  } catch (error) {
    throw new StackError(
      `no server answers at ${url}`,
      'is it running? --to or SLUICE_URL says where',
      error,
    );
  }
}

/** What stands in front of a server may answer with a page of its own. */
function asJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function readPayload(text: string | undefined): unknown {
  if (text === undefined) return { sample: true, number: randomInt(SAMPLE_NUMBERS) };
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`--payload is no JSON: ${error instanceof Error ? error.message : ''}`);
  }
}

function need(name: string, option: string, env: NodeJS.ProcessEnv): string {
  const value = env[name];
  if (value) return value;
  throw new StackError(`${name} is not set, and no stack runs here`, `give ${option}, or run \`npm start\``);
}
