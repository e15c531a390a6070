// Questions to a provider's API: GET only, again after a rate limit or a failure that passes, and with a sentence for every
// refusal. The key goes to the one address that was configured, and into no message.

import { TimedOut, within } from '../../deadline.ts';
import type { JsonObject } from '../read.ts';
import { isObject, parseMarked } from '../read.ts';

export interface ApiPorts {
  readonly fetch: typeof fetch;
  /** Resolves after so long, or rejects when the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Between 0 and 1. */
  readonly random: () => number;
  readonly signal: AbortSignal;
  /** Told before each pause. */
  readonly onRetry?: (reason: string, waitMs: number) => void;
}

export interface Api {
  /** As people call the provider. */
  readonly title: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** What must not appear in a message. */
  readonly key: string;
  readonly keyName: string;
  /** What the key has to allow. */
  readonly rights: string;
}

/** Asks for a path of the API; numbers in the answer are marked (../../digits.ts). */
export type Ask = (path: string, headers?: Readonly<Record<string, string>>) => Promise<JsonObject>;

/** The provider refused, or could not be asked: what happened, and what a person can do about it. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
  readonly hint: string;
  /** Of an answer that refuses the question. */
  readonly status: number | undefined;

  constructor(message: string, hint: string, cause?: unknown, status?: number) {
    super(message, cause === undefined ? undefined : { cause });
    this.hint = hint;
    this.status = status;
  }
}

/** About two minutes of waiting in all, which a provider's rate limit or a restart of its servers does not outlast. */
const TRIES_MAX = 9;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
/** A longer Retry-After is cut to it: the next answer says so again. */
const LONGEST_ORDERED_WAIT_MS = 60_000;
const ANSWER_MS = 60_000;
const MESSAGE_CHARS_MAX = 300;
/** Control characters and what breaks lines: the provider's words go to a terminal. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\u2028\u2029]+/gu;

const AGAIN = 'run the same command again: what was recorded is known, and nothing is recorded twice';

/** What a try came to: an answer, or why it may be tried again. */
type Tried = { readonly answer: JsonObject } | { readonly again: string; readonly waitMs?: number };

export function createAsk(api: Api, ports: ApiPorts): Ask {
  return async (path, headers = {}) => {
    const address = addressOf(api, path);
    for (let tries = 1; ; tries++) {
      const tried = await tryOnce(api, address, headers, ports);
      if ('answer' in tried) return tried.answer;
      if (tries === TRIES_MAX)
        throw new SourceError(`${api.title} did not answer after ${tries} tries: ${tried.again}`, AGAIN);
      const waitMs = tried.waitMs ?? growing(tries, ports.random());
      ports.onRetry?.(tried.again, waitMs);
      await ports.pause(waitMs, ports.signal);
    }
  };
}

/** A page's own address of the next page must not lead the key elsewhere. */
function addressOf({ title, url }: Api, path: string): URL {
  const address = new URL(path, url);
  if (address.origin === new URL(url).origin) return address;
  throw new SourceError(
    `${title} names a next page at another address`,
    'nothing was sent there; is the address of the API right?',
  );
}

async function tryOnce(
  api: Api,
  address: URL,
  headers: Readonly<Record<string, string>>,
  { fetch, signal }: ApiPorts,
): Promise<Tried> {
  signal.throwIfAborted();
  const init: RequestInit = {
    headers: { accept: 'application/json', ...api.headers, ...headers },
    redirect: 'manual',
  };
  const read = async (ending: AbortSignal) => {
    const response = await fetch(address, { ...init, signal: ending });
    return { response, text: await response.text() };
  };
  let response: Response;
  let text: string;
  try {
    ({ response, text } = await within(read, ANSWER_MS, signal));
  } catch (error) {
    signal.throwIfAborted();
    return { again: `no whole answer (${reasonOf(error)})` };
  }
  if (response.ok) return readAnswer(text);
  if (response.status === 429 || response.status >= 500)
    return { again: `HTTP ${response.status}`, ...orderedWait(response.headers.get('retry-after')) };
  throw refusalOf(api, response.status, text);
}

/** A 200 that is not whole JSON was cut on its way. */
function readAnswer(text: string): Tried {
  try {
    const answer = parseMarked(text);
    if (isObject(answer)) return { answer };
  } catch {
    // As below.
  }
  return { again: 'an answer that is not JSON' };
}

function orderedWait(header: string | null): { waitMs?: number } {
  const seconds = Number(header ?? Number.NaN);
  return seconds >= 0 ? { waitMs: Math.min(seconds * 1_000, LONGEST_ORDERED_WAIT_MS) } : {};
}

/** Twice as long each time, and between half of that and all of it, so that those who were refused together part. */
function growing(tries: number, random: number): number {
  return Math.min(FIRST_WAIT_MS * 2 ** (tries - 1), LONGEST_WAIT_MS) * (0.5 + random / 2);
}

function refusalOf(api: Api, status: number, text: string): SourceError {
  const { title, keyName, rights } = api;
  const said = wordsOf(text, api.key);
  const message = `${title} refuses the question with HTTP ${status}${said && `: ${said}`}`;
  const refuse = (hint: string) => new SourceError(message, hint, undefined, status);
  if (status === 401) return refuse(`is the value of ${keyName} a key that is in use?`);
  if (status === 403) return refuse(`the key ${keyName} needs ${rights}`);
  return refuse(`is the address of the API right (${new URL(api.url).origin})?`);
}

/** Stripe has its message below `error`, Twilio at the top. */
function wordsOf(text: string, key: string): string {
  const { answer = {} } = readAnswer(text) as { answer?: JsonObject };
  const { message } = isObject(answer.error) ? answer.error : answer;
  if (typeof message !== 'string') return '';
  return message.replaceAll(key, '***').replace(UNPRINTABLE, ' ').slice(0, MESSAGE_CHARS_MAX);
}

/** fetch says "fetch failed" and keeps the reason in its cause. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error & { cause?: { code?: unknown; message?: unknown } };
  if (error instanceof TimedOut) return `none within ${ANSWER_MS / 1_000} s`;
  return String(cause?.code ?? cause?.message ?? message);
}
