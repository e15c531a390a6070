// Who may pass the operator's doors: whoever sends the admin key, or the cookie that the key was exchanged for. The cookie is
// signed with the key, so that a new key ends every session; nothing is stored.

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { type DoorRequest, type DoorResponse, type Route, readJson } from '#core/door.ts';
import { DoorError } from '#core/errors.ts';
import type { Clock } from '#core/ports.ts';
import type { Schema } from '#core/schema.ts';

const COOKIE = 'sluice_session';
/** A working day with room to spare. */
const SESSION_SEC = 12 * 60 * 60;
const NONCE_BYTES = 16;
/** A person mistypes now and then; a program that guesses gets nowhere at this rate. */
const MAX_FAILURES_PER_SEC = 5;
const FAILURE_WINDOW_MS = 1_000;

const BEARER = /^Bearer ([\x21-\x7e]+)$/i;
const SESSION = /^(v1\.(\d{1,12})\.[\w-]{22})\.([\w-]{43})$/;

export const SESSION_BODY = {
  type: 'object',
  properties: { key: { type: 'string', maxLength: 1000, description: 'The admin key.' } },
  required: ['key'],
  additionalProperties: false,
} as const satisfies Schema;

export class OperatorAuth {
  readonly #key: string;
  readonly #keyHash: Buffer;
  readonly #now: Clock;
  /** When the latest wrong keys came, oldest first; no more of them than are needed to refuse. */
  #failures: number[] = [];

  constructor(adminKey: string, now: Clock) {
    this.#key = adminKey;
    this.#keyHash = sha256(adminKey);
    this.#now = now;
  }

  /** The same routes, each behind authorize(). */
  guard(routes: readonly Route[]): Route[] {
    return routes.map((route) => {
      if (!/^\/admin(\/|$)/.test(route.path)) throw new Error(`${route.path} is no path of an operator`);
      return {
        ...route,
        handle: (request, parameter) => {
          this.authorize(request);
          return route.handle(request, parameter);
        },
      };
    });
  }

  /** Throws a DoorError where the caller may not do this. */
  authorize(request: DoorRequest): void {
    const { authorization, cookie } = request.headers;
    if (authorization !== undefined) {
      const token = typeof authorization === 'string' ? BEARER.exec(authorization)?.[1] : undefined;
      if (token === undefined || !this.#isKey(token)) throw new DoorError('auth_required');
      return;
    }
    if (!this.#isSession(cookieOf(cookie))) throw new DoorError('auth_required');
    // A browser adds the cookie by itself, whoever made it send the request; this header it adds for nobody.
    if (request.method !== 'GET' && !isFromOwnPage(request)) throw new DoorError('csrf_refused');
  }

  routes(): Route[] {
    const path = '/admin/session';
    return [
      { method: 'POST', path, handle: (request) => this.#signIn(request) },
      ...this.guard([
        { method: 'GET', path, handle: () => empty({}) },
        { method: 'DELETE', path, handle: (request) => empty(setCookie(request, '', 0)) },
      ]),
    ];
  }

  #signIn(request: DoorRequest): DoorResponse {
    const { key } = readJson(request, SESSION_BODY);
    const since = this.#now() - FAILURE_WINDOW_MS;
    this.#failures = this.#failures.filter((at) => at > since);
    // A right key too: who may go on guessing would otherwise see which one was right.
    if (this.#failures.length >= MAX_FAILURES_PER_SEC) throw new DoorError('too_many_attempts');
    if (!this.#isKey(key)) {
      this.#failures.push(this.#now());
      throw new DoorError('auth_required', 'This is not the admin key.');
    }
    const expiresSec = Math.floor(this.#now() / 1_000) + SESSION_SEC;
    const text = `v1.${expiresSec}.${randomBytes(NONCE_BYTES).toString('base64url')}`;
    return empty(setCookie(request, `${text}.${this.#sign(text)}`, SESSION_SEC));
  }

  /** Hashed first: equal lengths, so the comparison says nothing about the key's length either. */
  #isKey(key: string): boolean {
    return timingSafeEqual(sha256(key), this.#keyHash);
  }

  #isSession(value: string | undefined): boolean {
    const [, text = '', expires = '', signature = ''] = SESSION.exec(value ?? '') ?? [];
    if (!timingSafeEqual(sha256(signature), sha256(this.#sign(text)))) return false;
    return this.#now() < Number(expires) * 1_000;
  }

  #sign(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('base64url');
  }
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function cookieOf(header: string | string[] | undefined): string | undefined {
  const pairs = String(header ?? '').split(';');
  const found = pairs.find((pair) => pair.trim().startsWith(`${COOKIE}=`));
  return found?.trim().slice(COOKIE.length + 1);
}

function isFromOwnPage({ headers }: DoorRequest): boolean {
  if (headers['x-sluice-csrf'] !== '1') return false;
  const { origin, host } = headers;
  if (origin === undefined) return true;
  return typeof origin === 'string' && URL.canParse(origin) && new URL(origin).host === host;
}

function setCookie(request: DoorRequest, value: string, maxAgeSec: number): Record<string, string> {
  const secure = request.headers['x-forwarded-proto'] === 'https' ? '; Secure' : '';
  return {
    'set-cookie': `${COOKIE}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAgeSec}${secure}`,
  };
}

function empty(headers: Record<string, string>): DoorResponse {
  return { status: 204, headers: { 'cache-control': 'no-store', ...headers }, body: '' };
}
