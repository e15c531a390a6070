// Uses a running stack in as many ways as there are, right and wrong, and keeps every answer.

import type { Place } from './sweep.ts';

type Ask = { method?: string; headers?: Record<string, string>; body?: string };
type Document = { paths: Record<string, Record<string, unknown>> };

const METHODS = new Set(['get', 'post', 'put', 'patch', 'delete']);
/** An answer that goes on for ever is looked at for its first piece only. */
const STREAM = 'text/event-stream';
const JSON_TYPE = { 'content-type': 'application/json' };

/** The status, the headers and the body, as one text. */
async function answerTo(url: string, { method = 'GET', headers = {}, body }: Ask = {}): Promise<Place> {
  const response = await fetch(url, {
    method,
    headers,
    redirect: 'manual',
    ...(body !== undefined && { body }),
  });
  const isStream = response.headers.get('content-type')?.startsWith(STREAM);
  let text = '';
  if (isStream && response.body !== null) {
    const reader = response.body.getReader();
    text = new TextDecoder().decode((await reader.read()).value);
    await reader.cancel();
  } else text = await response.text();
  const shown = JSON.stringify([...response.headers]);
  return [`answer to ${method} ${new URL(url).pathname}`, `${response.status} ${shown} ${text}`];
}

/** Every operation that the API's own description names, with the right key, a wrong one and none, and with bodies that are wrong. */
export async function askEverything(url: string, adminKey: string): Promise<Place[]> {
  const description = await answerTo(`${url}/openapi.json`);
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as Document;
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods)
      .filter((method) => METHODS.has(method))
      .map((method) => ({ path: path.replace(/\{[^}]+\}/g, 'unknown'), method: method.toUpperCase() })),
  );
  const places = [description, await answerTo(`${url}/healthz`)];
  const keys = [adminKey, `${adminKey}x`, undefined];
  for (const { path, method } of operations) {
    for (const key of keys) {
      const headers = { ...JSON_TYPE, ...(key !== undefined && { authorization: `Bearer ${key}` }) };
      const bodies = method === 'GET' ? [undefined] : ['{', '{"unknown":1}'];
      for (const body of bodies)
        places.push(
          await answerTo(`${url}${path}`, { method, headers, ...(body !== undefined && { body }) }),
        );
    }
  }
  return places;
}

/** The handshake carries its secret in the URL, as Meta wants it: the one place where an access log would keep one. */
export function shakeHands(url: string, token: string): Promise<Place[]> {
  const query = (verifyToken: string) =>
    new URLSearchParams({ 'hub.mode': 'subscribe', 'hub.verify_token': verifyToken, 'hub.challenge': '77' });
  return Promise.all([token, `${token}x`].map((each) => answerTo(`${url}?${query(each)}`)));
}

/** What PostgREST and the Edge Functions say to good keys that ask for what is not there, and to bad ones. */
export async function askGateway(url: string, key: string): Promise<Place[]> {
  const places: Place[] = [];
  for (const token of [key, key.slice(0, -3), 'undefined'])
    for (const path of [
      '/rest/v1/',
      '/rest/v1/claims?select=nothing',
      '/rest/v1/rpc/unknown',
      '/rest/v1/engine_config?pool_id=eq.x',
      '/functions/v1/bridge-worker',
      '/functions/v1/admin-dlq?limit=x',
      '/functions/v1/webhooks/unknown',
      '/functions/v1/webhooks/stripe',
    ])
      for (const method of ['GET', 'POST'])
        places.push(
          await answerTo(`${url}${path}`, {
            method,
            headers: { ...JSON_TYPE, apikey: token, authorization: `Bearer ${token}` },
            ...(method === 'POST' && { body: '{"x":1}' }),
          }),
        );
  return places;
}
