// The door for call events: the signature over the raw bytes first, then the body, then the replay cache, then the insert.
// The database's unique index is what makes an event count once; the cache in front of it only saves work.

import { AnswerCache } from '../answer_cache.ts';
import type { Coalescer } from '../coalescer.ts';
import { inTime } from '../deadline.ts';
import { HttpError } from '../errors.ts';
import { toHttpError } from '../failure.ts';
import type { Inbox } from '../inbox/inbox.ts';
import { callMessage } from '../inbox/message.ts';
import type { Log, Metrics, Turn } from '../ports.ts';
import {
  DELIVERY_MS,
  type HttpRequest,
  type HttpResponse,
  JSON_TYPE,
  jsonResponse,
  type Route,
  requireType,
} from '../router.ts';
import type { UnsignedLimit } from '../unsigned.ts';
import type { HmacPort } from '../webhook/hmac.ts';
import { minSecretChars, type SecretPorts, Secrets } from '../webhook/secrets.ts';
import { readCallBody } from './body.ts';
import { createCallRecorder } from './record.ts';
import type { ReplayCache } from './replay_cache.ts';
import {
  hashOfSignature,
  refusalOfCall,
  SIGNATURE_HEADER,
  SITE_HEADER,
  type SignatureRefusal,
  TIMESTAMP_HEADER,
} from './signature.ts';
import type { Call, CallSite, CallStore, RecordedCall } from './store.ts';

export interface CallPorts extends SecretPorts {
  readonly store: CallStore;
  /** One that does not fail: a shared one stands behind a GuardedReplayCache. */
  readonly cache: ReplayCache;
  readonly hmac: HmacPort;
  /** Where calls go while DB2 is away, of sites that accept them then; without it they are refused. */
  readonly inbox?: Inbox | undefined;
  readonly unsigned?: UnsignedLimit | undefined;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly turn?: Turn;
}

const MAX_CALL_BYTES = 64 * 1024;
const MS_PER_SEC = 1_000;
/** The rule of the table: an id that breaks it cannot be a site, so the database is not asked. */
const SITE_ID = /^[A-Za-z0-9_:@-]{1,200}$/;
/** The metric label of all unknown sites: ids from outside would make an unbounded number of series. */
const NO_SITE = 'unknown';

type Refusal = SignatureRefusal | 'unknown_site' | 'missing_signature' | 'no_secret';

const HINTS: Partial<Record<Refusal, string>> = {
  missing_signature: `Send ${SIGNATURE_HEADER}, once.`,
  malformed_signature: `${SIGNATURE_HEADER} is 64 lower-case hex characters, once.`,
  malformed_timestamp: `${TIMESTAMP_HEADER} is the time in whole seconds, once.`,
  stale: `${TIMESTAMP_HEADER} is too far from now: compare the clocks.`,
};

export class CallRoutes {
  readonly #ports: CallPorts;
  /** By id: one that is disabled stops within a second. */
  readonly #sites: AnswerCache<CallSite | undefined>;
  readonly #coalescer: Coalescer<Call, RecordedCall>;
  readonly #secrets: Secrets;
  readonly #deliveryMs: number;

  constructor(ports: CallPorts, deliveryMs = DELIVERY_MS) {
    this.#ports = ports;
    this.#deliveryMs = deliveryMs;
    const { inbox, store } = ports;
    const find = (siteId: string) => store.findSite(siteId);
    this.#secrets = new Secrets(inbox ? { ...ports, findSecret: inbox.findSecret(ports.findSecret) } : ports);
    this.#sites = new AnswerCache(
      inbox === undefined ? find : (siteId) => inbox.findDoor('site', siteId, () => find(siteId)),
      ports.now,
    );
    this.#coalescer = createCallRecorder(store, ports.turn);
  }

  routes(path = '/call-events'): (Route & { readonly maxBodyBytes: number })[] {
    return [
      {
        method: 'POST',
        path,
        maxBodyBytes: MAX_CALL_BYTES,
        checkTarget: (request) => this.#checkSite(request),
        handle: (request) => this.#receive(request),
      },
    ];
  }

  /** For shutdown: everything that was accepted gets its answer, nothing new is taken. */
  drain(): Promise<void> {
    return this.#coalescer.drain();
  }

  async #receive(request: HttpRequest): Promise<HttpResponse> {
    let siteId = NO_SITE;
    const arrivedMs = this.#ports.now();
    const take = async () => {
      const site = await this.#findSite(request);
      siteId = site.site_id;
      const call = await this.#read(request, site);
      return this.#record(call, () => this.#keep(site, call, arrivedMs));
    };
    return this.#inTime(take(), () => siteId);
  }

  /** A sender of a large body is refused early where its site does not exist, and can tell from the time that it does not. */
  async #checkSite(request: HttpRequest): Promise<undefined> {
    await this.#inTime(this.#findSite(request), () => NO_SITE);
    if (request.headers[SIGNATURE_HEADER] === undefined) await this.#ports.unsigned?.check(request);
  }

  /** What was made of the request, unless it takes too long. A failure is counted. */
  async #inTime<Made>(made: Promise<Made>, siteId: () => string): Promise<Made> {
    try {
      return await inTime(this.#deliveryMs, made, () => new HttpError('database_unavailable'));
    } catch (error) {
      const { kind } = toHttpError(error);
      // A refused signature has been counted with its reason.
      if (kind.code !== 'bad_signature')
        this.#count(siteId(), kind.http >= 500 ? 'failed' : 'refused', kind.code);
      throw error;
    }
  }

  async #findSite(request: HttpRequest): Promise<CallSite> {
    requireType(request, [JSON_TYPE]);
    const siteId = request.headers[SITE_HEADER];
    const isId = typeof siteId === 'string' && SITE_ID.test(siteId);
    const site = isId ? await this.#sites.get(siteId) : undefined;
    if (site?.is_active === true) return site;
    // The same answer as for a site with a bad signature, so that a caller cannot find out which sites exist.
    const refusal = await this.#refusalOf(request, String(siteId), []);
    throw await this.#refused(request, NO_SITE, 'unknown_site', refusal);
  }

  async #read(request: HttpRequest, site: CallSite): Promise<Call> {
    const signatureHash = await this.#verify(request, site);
    const { eventId, kind, occurredAt, payload } = readCallBody(request.body);
    if (site.kinds !== null && !site.kinds.includes(kind))
      throw new HttpError('invalid_input', `kind must be one of ${site.kinds.join(', ')}.`);
    return { siteId: site.site_id, eventId, kind, payload, occurredAt, signatureHash };
  }

  /** The hash of a signature that is good; null where there is none and the site need not sign. */
  async #verify(request: HttpRequest, site: CallSite): Promise<string | null> {
    const signature = request.headers[SIGNATURE_HEADER];
    if (signature === undefined && !site.require_signature) {
      await this.#ports.unsigned?.count(request);
      return null;
    }
    const { hmac, log } = this.#ports;
    const { values, areAll } = await this.#secrets.good(site.secret_names, minSecretChars(), log, {
      site_id: site.site_id,
    });
    const refusal = await this.#refusalOf(request, site.site_id, values);
    if (refusal === undefined) return hashOfSignature(String(signature), hmac);
    // Only DB2 knows a secret of the site, and is away: the call may be genuine.
    if (refusal === 'bad_signature' && !areAll) throw new HttpError('database_unavailable');
    if (refusal !== 'bad_signature' || values.length > 0)
      throw await this.#refused(request, site.site_id, refusal);
    throw await this.#refused(request, site.site_id, 'no_secret', refusal);
  }

  async #refusalOf(
    { headers, body }: HttpRequest,
    site: string,
    secrets: readonly string[],
  ): Promise<SignatureRefusal | 'missing_signature' | undefined> {
    const { [SIGNATURE_HEADER]: signature, [TIMESTAMP_HEADER]: timestamp } = headers;
    if (typeof signature !== 'string') return 'missing_signature';
    const { hmac, now } = this.#ports;
    const call = { site, timestamp: typeof timestamp === 'string' ? timestamp : '', body };
    return refusalOfCall(call, signature, secrets, hmac, Math.floor(now() / MS_PER_SEC));
  }

  /** Undefined where DB2 could not record it, and the inbox has it. */
  #keep(site: CallSite, call: Call, arrivedMs: number): Promise<RecordedCall | undefined> {
    const { inbox } = this.#ports;
    if (inbox === undefined || site.on_outage !== 'accept') return this.#coalescer.submit(call);
    // Without a signature nothing else recognises a call that DB2 has recorded after all.
    const known = call.signatureHash === null ? { ...call, id: newId(arrivedMs) } : call;
    return inbox.record(
      arrivedMs,
      () => this.#coalescer.submit(known),
      (receivedAt) => callMessage(known, receivedAt),
    );
  }

  async #record(call: Call, keep: () => Promise<RecordedCall | undefined>): Promise<HttpResponse> {
    if (call.signatureHash === null) return this.#answer(call, await keep());
    const { cache } = this.#ports;
    const key = `${call.siteId}:${call.signatureHash}`;
    const claim = await cache.claim(key);
    if (claim === 'done') return this.#noop(call, 'replay_cache');
    let recorded: RecordedCall | undefined;
    try {
      recorded = await keep();
    } catch (error) {
      // A failed call is not a replay when it comes again. A claim of another request is not ours to release.
      if (claim === 'claimed') void cache.release(key);
      throw error;
    }
    // Committed, by this request or an earlier one, in DB2 or in the inbox. The answer does not wait for the cache.
    if (recorded?.outcome !== 'event_conflict') void cache.done(key);
    else if (claim === 'claimed') void cache.release(key);
    return this.#answer(call, recorded);
  }

  #answer(call: Call, recorded: RecordedCall | undefined): HttpResponse {
    if (recorded === undefined) {
      this.#count(call.siteId, 'accepted', '');
      return jsonResponse(200, { status: 'accepted' });
    }
    const { id, outcome } = recorded;
    if (outcome === 'duplicate') return this.#noop(call, 'idempotent_conflict');
    if (outcome === 'event_conflict') throw new HttpError('event_conflict');
    this.#count(call.siteId, 'recorded', '');
    return jsonResponse(200, { status: 'recorded', id });
  }

  /** The sender gets the same answer from the cache and from the database; only the metrics tell them apart. */
  #noop(call: Call, knownBy: 'replay_cache' | 'idempotent_conflict'): HttpResponse {
    this.#count(call.siteId, 'noop', knownBy);
    return jsonResponse(200, { status: 'noop', reason: 'idempotent_conflict' });
  }

  /** `reason` is for the metrics, `told` for the sender. Rejects where the sender's address has been refused too often. */
  async #refused(
    request: HttpRequest,
    site: string,
    reason: Refusal,
    told: Refusal = reason,
  ): Promise<HttpError> {
    await this.#ports.unsigned?.count(request);
    this.#count(site, 'refused', reason);
    return new HttpError('bad_signature', HINTS[told]);
  }

  #count(
    site: string,
    result: 'recorded' | 'accepted' | 'noop' | 'refused' | 'failed',
    reason: string,
  ): void {
    this.#ports.metrics.count('call_events_total', { site, result, reason });
  }
}

/** An id that begins with the time (UUID version 7), as those that the database makes. */
function newId(nowMs: number): string {
  const time = nowMs.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${crypto.randomUUID().slice(15)}`;
}
