// Who may pass the operator's doors: whoever sends the admin key, or the cookie that the key was exchanged for. The cookie is
// signed with the key, so that a new key ends every session; stored is only which sessions were signed out.

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { HttpError } from '#core/errors.ts';
import type { Clock } from '#core/ports.ts';
import { type Follow, type HttpRequest, type HttpResponse, type Route, readJson } from '#core/router.ts';
import type { Schema } from '#core/schema.ts';
import { EndedSessions, type Session } from './ended_sessions.ts';
import { isFromOwnPage, isHttps, type ProxySettings } from './proxy.ts';
import { JWT } from './tokens.ts';

const COOKIE = 'sluice_session';
/** A browser takes a cookie of this name over https only, from this host only, and for all its paths: no neighbour can plant one. */
const HTTPS_COOKIE = `__Host-${COOKIE}`;
/** A working day with room to spare. */
const SESSION_SEC = 12 * 60 * 60;
const NONCE_BYTES = 16;

const BEARER = /^Bearer ([\x21-\x7e]+)$/i;
const SESSION = /^(v1\.(\d{1,12})\.([\w-]{22}))\.([\w-]{43})$/;

export const SESSION_BODY = {
  type: 'object',
  properties: { key: { type: 'string', maxLength: 1000, description: 'The admin key.' } },
  required: ['key'],
  additionalProperties: false,
} as const satisfies Schema;

export interface OperatorAuthOptions {
  readonly proxy?: ProxySettings;
  /** Counts a wrong key; throws where its address has sent too many. Left out: they are not counted. */
  readonly wrongKeys?: { count(request: HttpRequest): void } | undefined;
  /** Sessions that were signed out; known to this process only where left out. */
  readonly endedSessions?: EndedSessions;
}

export class OperatorAuth {
  readonly #key: string;
  readonly #keyHash: Buffer;
  readonly #now: Clock;
  readonly #proxy: ProxySettings;
  readonly #wrongKeys: OperatorAuthOptions['wrongKeys'];
  readonly #ended: EndedSessions;

  constructor(adminKey: string, now: Clock, options: OperatorAuthOptions = {}) {
    if (adminKey === '') throw new Error('the admin key must not be empty');
    if (JWT.test(adminKey))
      throw new Error('the admin key has the form of a JWT, and would be taken for one');
    this.#key = adminKey;
    this.#keyHash = sha256(adminKey);
    this.#now = now;
    this.#proxy = options.proxy ?? { trustedProxies: 0 };
    this.#wrongKeys = options.wrongKeys;
    this.#ended = options.endedSessions ?? new EndedSessions(now);
  }

  /** The same routes, each behind authorize(). A stream ends with the session that opened it. */
  guard(routes: readonly Route[]): Route[] {
    return routes.map((route) => {
      if (!/^\/admin(\/|$)/.test(route.path)) throw new Error(`${route.path} is no path of an operator`);
      return {
        ...route,
        handle: async (request, parameter) => {
          const session = await this.authorize(request);
          const answer = await route.handle(request, parameter);
          if (session === undefined || answer.follow === undefined) return answer;
          return { ...answer, follow: this.#followUntilEnd(session, answer.follow) };
        },
      };
    });
  }

  /** The session that lets the caller in, or undefined for the key; throws a HttpError where the caller may not do this. */
  async authorize(request: HttpRequest): Promise<Session | undefined> {
    const { authorization } = request.headers;
    if (authorization !== undefined) {
      const token = typeof authorization === 'string' ? BEARER.exec(authorization)?.[1] : undefined;
      if (token === undefined) throw new HttpError('auth_required');
      if (!this.isAdminKey(token, request)) throw new HttpError('auth_required');
      return undefined;
    }
    const session = this.#sessionOf(this.#cookieOf(request));
    if (session === undefined || (await this.#ended.has(session))) throw new HttpError('auth_required');
    // A browser adds the cookie by itself, whoever made it send the request.
    const isReading = request.method === 'GET' || request.method === 'HEAD';
    if (!isReading && !isFromOwnPage(request, this.#proxy)) throw new HttpError('csrf_refused');
    return session;
  }

  /**
   * The one place where the key is compared, whichever route it was sent to. Always compared, so that wrong keys from the
   * operator's own address never shut out the right one: it is the length of the key that makes guessing hopeless. The limit on
   * wrong ones spares the server their load: too_many_attempts is thrown once their address has sent too many.
   */
  isAdminKey(key: string, request: HttpRequest): boolean {
    // Hashed first: equal lengths, so the comparison says nothing about the key's length either.
    if (timingSafeEqual(sha256(key), this.#keyHash)) return true;
    this.#wrongKeys?.count(request);
    return false;
  }

  routes(): Route[] {
    const path = '/admin/session';
    return [
      { method: 'POST', path, handle: (request) => this.#signIn(request) },
      ...this.guard([
        { method: 'GET', path, handle: () => empty({}) },
        { method: 'DELETE', path, handle: (request) => this.#signOut(request) },
      ]),
    ];
  }

  #signIn(request: HttpRequest): HttpResponse {
    const { key } = readJson(request, SESSION_BODY);
    if (!this.isAdminKey(key, request)) throw new HttpError('auth_required', 'This is not the admin key.');
    const expiresSec = Math.floor(this.#now() / 1_000) + SESSION_SEC;
    const text = `v1.${expiresSec}.${randomBytes(NONCE_BYTES).toString('base64url')}`;
    return empty(this.#setCookie(request, `${text}.${this.#sign(text)}`, SESSION_SEC));
  }

  async #signOut(request: HttpRequest): Promise<HttpResponse> {
    const session = this.#sessionOf(this.#cookieOf(request));
    if (session !== undefined) await this.#ended.end(session);
    return empty(this.#setCookie(request, '', 0));
  }

  #sessionOf(value: string | undefined): Session | undefined {
    const [, text = '', expires = '', id = '', signature = ''] = SESSION.exec(value ?? '') ?? [];
    if (!timingSafeEqual(sha256(signature), sha256(this.#sign(text)))) return undefined;
    const session = { id, expiresMs: Number(expires) * 1_000 };
    return this.#now() < session.expiresMs ? session : undefined;
  }

  /** Whatever is sent is asked about first, so that a stream that speaks once a second ends a second late at most. */
  #followUntilEnd(session: Session, follow: Follow): Follow {
    return (send, closed, end) => {
      const sendWhileGood = (text: string): boolean => {
        if (this.#now() < session.expiresMs && !this.#ended.isKnown(session)) return send(text);
        end();
        return false;
      };
      follow(sendWhileGood, closed, end);
    };
  }

  #sign(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('base64url');
  }

  #setCookie(request: HttpRequest, value: string, maxAgeSec: number): Record<string, string> {
    const secure = isHttps(request, this.#proxy) ? '; Secure' : '';
    const name = this.#cookieName(request);
    return {
      'set-cookie': `${name}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAgeSec}${secure}`,
    };
  }

  #cookieOf(request: HttpRequest): string | undefined {
    const start = `${this.#cookieName(request)}=`;
    const pairs = String(request.headers.cookie ?? '').split(';');
    const found = pairs.find((pair) => pair.trim().startsWith(start));
    return found?.trim().slice(start.length);
  }

  #cookieName(request: HttpRequest): string {
    return isHttps(request, this.#proxy) ? HTTPS_COOKIE : COOKIE;
  }
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function empty(headers: Record<string, string>): HttpResponse {
  return { status: 204, headers: { 'cache-control': 'no-store', ...headers }, body: '' };
}
