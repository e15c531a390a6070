// Who may pass the operators' routes: a person with a key, or with the cookie that the key was exchanged for, whose role is enough
// for the route. The cookie names the hash of the key, so that a key that is rotated or revoked ends its sessions; stored is only
// which sessions were signed out.

import { createHash, createHmac, randomBytes, scryptSync, timingSafeEqual } from 'node:crypto';
import { HttpError } from '#core/errors.ts';
import type { Clock } from '#core/ports.ts';
import { ADMIN_ROLES, type LeastRole, type Operator, requireRole } from '#core/roles.ts';
import {
  type Follow,
  type HttpRequest,
  type HttpResponse,
  jsonResponse,
  type Route,
  readJson,
} from '#core/router.ts';
import type { Schema } from '#core/schema.ts';
import { EndedSessions, type Session } from './ended_sessions.ts';
import { hashOfKey, KnownOperators } from './known_operators.ts';
import { isFromOwnPage, isHttps, type ProxySettings } from './proxy.ts';
import { JWT } from './tokens.ts';

const COOKIE = 'sluice_session';
/** A browser takes a cookie of this name over https only, from this host only, and for all its paths: no neighbour can plant one. */
const HTTPS_COOKIE = `__Host-${COOKIE}`;
/** A working day with room to spare. */
const SESSION_SEC = 12 * 60 * 60;
const NONCE_BYTES = 16;
const SIGNING_KEY_BYTES = 32;

const BEARER = /^Bearer ([\x21-\x7e]+)$/i;
const SESSION = /^(v2\.(\d{1,12})\.([\w-]{22})\.([\w-]{43}))\.([\w-]{43})$/;

export const SESSION_BODY = {
  type: 'object',
  properties: { key: { type: 'string', maxLength: 1000, description: "The operator's key." } },
  required: ['key'],
  additionalProperties: false,
} as const satisfies Schema;

export interface OperatorAuthOptions {
  readonly proxy?: ProxySettings;
  /** Counts a wrong key; throws where its address has sent too many. Left out: they are not counted. */
  readonly wrongKeys?: { count(request: HttpRequest): Promise<void> | undefined } | undefined;
  /** Sessions that were signed out; known to this process only where left out. */
  readonly endedSessions?: EndedSessions;
  /** The admin key alone where left out. */
  readonly known?: KnownOperators;
}

/** The operator, and until when: false once the session has ended or the key is not good any more. */
export interface Admitted {
  readonly operator: Operator;
  isStillGood(): boolean;
}

interface KeySession extends Session {
  readonly keyHash: string;
}

export class OperatorAuth {
  readonly #signingKey: Buffer;
  readonly #now: Clock;
  readonly #proxy: ProxySettings;
  readonly #wrongKeys: OperatorAuthOptions['wrongKeys'];
  readonly #ended: EndedSessions;
  readonly #known: KnownOperators;

  constructor(adminKey: string, now: Clock, options: OperatorAuthOptions = {}) {
    if (adminKey === '') throw new Error('the admin key must not be empty');
    if (JWT.test(adminKey))
      throw new Error('the admin key has the form of a JWT, and would be taken for one');
    // Slow on purpose: a viewer's cookie must not help to guess the admin key.
    this.#signingKey = scryptSync(adminKey, 'sluice sessions', SIGNING_KEY_BYTES);
    this.#now = now;
    this.#proxy = options.proxy ?? { trustedProxies: 0 };
    this.#wrongKeys = options.wrongKeys;
    this.#ended = options.endedSessions ?? new EndedSessions(now);
    this.#known = options.known ?? new KnownOperators(adminKey, now);
  }

  /** The same routes, each behind the role that ADMIN_ROLES has for it. A stream ends with the session or key that opened it. */
  guard(routes: readonly Route[]): Route[] {
    return routes.map((route) => {
      const least = ADMIN_ROLES[`${route.method} ${route.path}`];
      if (least === undefined) throw new Error(`${route.method} ${route.path} has no role in ADMIN_ROLES`);
      return {
        ...route,
        handle: async (request, parameter) => {
          const { operator, isStillGood } = await this.authorize(request, least);
          const answer = await route.handle({ ...request, operator }, parameter);
          if (answer.follow !== undefined)
            return { ...answer, follow: followWhile(isStillGood, answer.follow) };
          if (answer.parts !== undefined) return { ...answer, parts: partsWhile(isStillGood, answer.parts) };
          return answer;
        },
      };
    });
  }

  /** Throws a HttpError where the caller is not an operator, or one whose role is not enough. */
  async authorize(request: HttpRequest, least: LeastRole): Promise<Admitted> {
    const admitted = await this.#admit(request);
    requireRole(admitted.operator, least);
    return admitted;
  }

  /**
   * The one place where a key is looked up, whichever route it was sent to. Always looked up, so that wrong keys from the
   * operator's own address never shut out the right one: it is the length of the key that makes guessing hopeless. The limit on
   * wrong ones spares the server their load: too_many_attempts is thrown once their address has sent too many.
   */
  async findOperator(key: string, request: HttpRequest): Promise<Operator | undefined> {
    const operator = await this.#known.find(hashOfKey(key));
    if (operator === undefined) await this.#wrongKeys?.count(request);
    return operator;
  }

  async #admit(request: HttpRequest): Promise<Admitted> {
    const { authorization } = request.headers;
    if (authorization !== undefined) {
      const key = typeof authorization === 'string' ? BEARER.exec(authorization)?.[1] : undefined;
      const operator = key === undefined ? undefined : await this.findOperator(key, request);
      if (key === undefined || operator === undefined) throw new HttpError('auth_required');
      const hash = hashOfKey(key);
      return { operator, isStillGood: () => this.#known.isKnown(hash) };
    }
    const session = this.#sessionOf(this.#cookieOf(request));
    if (session === undefined || (await this.#ended.has(session))) throw new HttpError('auth_required');
    const operator = await this.#known.find(session.keyHash);
    if (operator === undefined) throw new HttpError('auth_required');
    // A browser adds the cookie by itself, also to a request that a foreign page made it send.
    const isReading = request.method === 'GET' || request.method === 'HEAD';
    if (!isReading && !isFromOwnPage(request, this.#proxy)) throw new HttpError('csrf_refused');
    const isStillGood = (): boolean =>
      this.#now() < session.expiresMs &&
      !this.#ended.isKnown(session) &&
      this.#known.isKnown(session.keyHash);
    return { operator, isStillGood };
  }

  routes(): Route[] {
    const path = '/admin/session';
    return [
      { method: 'POST', path, handle: (request) => this.#signIn(request) },
      ...this.guard([
        { method: 'GET', path, handle: ({ operator }) => jsonResponse(200, operator) },
        { method: 'DELETE', path, handle: (request) => this.#signOut(request) },
      ]),
    ];
  }

  async #signIn(request: HttpRequest): Promise<HttpResponse> {
    const { key } = readJson(request, SESSION_BODY);
    const operator = await this.findOperator(key, request);
    if (operator === undefined) throw new HttpError('auth_required', "This is not an operator's key.");
    const expiresSec = Math.floor(this.#now() / 1_000) + SESSION_SEC;
    const nonce = randomBytes(NONCE_BYTES).toString('base64url');
    const text = `v2.${expiresSec}.${nonce}.${hashOfKey(key)}`;
    return empty(this.#setCookie(request, `${text}.${this.#sign(text)}`, SESSION_SEC));
  }

  async #signOut(request: HttpRequest): Promise<HttpResponse> {
    const session = this.#sessionOf(this.#cookieOf(request));
    if (session !== undefined) await this.#ended.end(session);
    return empty(this.#setCookie(request, '', 0));
  }

  #sessionOf(value: string | undefined): KeySession | undefined {
    const [, text = '', expires = '', id = '', keyHash = '', signature = ''] =
      SESSION.exec(value ?? '') ?? [];
    if (!timingSafeEqual(sha256(signature), sha256(this.#sign(text)))) return undefined;
    const session = { id, keyHash, expiresMs: Number(expires) * 1_000 };
    return this.#now() < session.expiresMs ? session : undefined;
  }

  #sign(text: string): string {
    return createHmac('sha256', this.#signingKey).update(text).digest('base64url');
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

/** Whatever is sent is asked about first, so that a stream that speaks once a second ends a second late at most. */
function followWhile(isStillGood: () => boolean, follow: Follow): Follow {
  return (send, closed, end) => {
    const sendWhileGood = (text: string): boolean => {
      if (isStillGood()) return send(text);
      end();
      return false;
    };
    follow(sendWhileGood, closed, end);
  };
}

/** Broken off, so that what was sent is not taken for the whole. */
async function* partsWhile(isStillGood: () => boolean, parts: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const part of parts) {
    if (!isStillGood()) throw new HttpError('auth_required');
    yield part;
  }
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function empty(headers: Record<string, string>): HttpResponse {
  return { status: 204, headers: { 'cache-control': 'no-store', ...headers }, body: '' };
}
