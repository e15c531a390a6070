// Only a caller with the service role key may call an Edge Function. The platform's own check is switched off
// (verify_jwt = false), because it accepts every valid token, a buyer's too.

import { HttpError } from '../errors.ts';
import { SERVICE } from '../operator.ts';
import type { HttpRequest } from '../router.ts';

/** A shorter text is not a key but an empty setting, or the word "undefined" that a careless script wrote. */
const MIN_KEY_CHARS = 20;
const BEARER = /^Bearer ([\x21-\x7e]+)$/i;

const encoder = new TextEncoder();

/** Compares digests, so that neither the length nor the first difference shows in the time it takes. */
async function isSame(left: string, right: string): Promise<boolean> {
  const [a, b] = await Promise.all(
    [left, right].map(
      async (text) => new Uint8Array(await crypto.subtle.digest('SHA-256', encoder.encode(text))),
    ),
  );
  let difference = 0;
  for (const [index, byte] of (a ?? []).entries()) difference |= byte ^ (b?.[index] ?? 256);
  return difference === 0 && a !== undefined;
}

/** False for every token where the key is not set. */
export async function isKey(token: string, key: string | undefined): Promise<boolean> {
  return key !== undefined && key.length >= MIN_KEY_CHARS && (await isSame(token, key));
}

/** Accepts callers that send the key, under the name of its role. Without a configured key it refuses all. */
export function requireKey(key: string | undefined): (request: HttpRequest) => Promise<string> {
  return async ({ headers: { authorization } }) => {
    const token = typeof authorization === 'string' ? BEARER.exec(authorization)?.[1] : undefined;
    if (token === undefined || !(await isKey(token, key))) throw new HttpError('auth_required');
    return SERVICE;
  };
}
