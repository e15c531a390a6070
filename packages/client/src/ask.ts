// One call over HTTP, tried until it is answered or another try would not help. Web globals only.

import { noAnswer, notSluice, type Refusal, refusalOf, SluiceError } from './error.ts';
import type { SluiceRequest } from './request.ts';
import { pauseMs, type RetryOptions } from './retry.ts';

export interface AskOptions extends RetryOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly fetch: typeof fetch;
}

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Readonly<Record<string, string | number>>;
  /** For the error, so that the caller can go on with it. */
  readonly request?: SluiceRequest;
  readonly signal?: AbortSignal | undefined;
}

export async function ask<Answer>(options: AskOptions, asked: Asked): Promise<Answer> {
  for (let tries = 1; ; tries++) {
    asked.signal?.throwIfAborted();
    const result = await tryOnce<Answer>(options, asked);
    if ('answer' in result) return result.answer;
    const { refusal } = result;
    if (!refusal.retryable || tries >= options.maxTries) throw new SluiceError(refusal, tries, asked.request);
    await options.sleep(pauseMs(tries, refusal.retryAfterMs, options.random), asked.signal);
  }
}

async function tryOnce<Answer>(
  { url, headers, timeoutMs, fetch }: AskOptions,
  { method, path, headers: more, body, signal: given }: Asked,
): Promise<{ answer: Answer } | { refusal: Refusal }> {
  const { signal, clear } = limit(timeoutMs, given);
  try {
    const response = await fetch(`${url}${path}`, {
      method,
      signal,
      headers: { ...headers, ...more, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return response.ok ? answerOf<Answer>(response, text) : { refusal: refusalOf(response, text) };
  } catch (error) {
    given?.throwIfAborted();
    return { refusal: noAnswer(error) };
  } finally {
    clear();
  }
}

/** The timer holds its signal. Node 20 forgets an AbortSignal.timeout that only AbortSignal.any knows (nodejs/node#57736). */
function limit(ms: number, given: AbortSignal | undefined): { signal: AbortSignal; clear: () => void } {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new Error('no answer in time')), ms);
  const signal = given ? AbortSignal.any([given, late.signal]) : late.signal;
  return { signal, clear: () => clearTimeout(timer) };
}

/** A page of a hotel's Wi-Fi is a good answer to the browser, and none to us. */
function answerOf<Answer>({ status }: Response, text: string): { answer: Answer } | { refusal: Refusal } {
  try {
    return { answer: JSON.parse(text) as Answer };
  } catch (error) {
    return { refusal: notSluice(status, error) };
  }
}

/** A stream, or the refusal. Its beginning is waited for as long as for an answer. */
export async function open(
  { url, headers, timeoutMs, fetch }: AskOptions,
  path: string,
  given: AbortSignal | undefined,
): Promise<{ body: Response['body'] } | { refusal: Refusal }> {
  const { signal, clear } = limit(timeoutMs, given);
  try {
    const response = await fetch(`${url}${path}`, { headers, signal });
    if (response.ok) return { body: response.body };
    return { refusal: refusalOf(response, await response.text()) };
  } catch (error) {
    return { refusal: noAnswer(error) };
  } finally {
    clear();
  }
}
