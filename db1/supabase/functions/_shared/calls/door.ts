// The door for call events: the signature over the raw bytes first, then the body, then the replay cache, then the insert.
// The database's unique index is what makes an event count once; the cache in front of it only saves work.

import { Coalescer } from '../coalescer.ts';
import { type DoorRequest, type DoorResponse, jsonResponse, type Route } from '../door.ts';
import { DoorError, toDoorError } from '../errors.ts';
import type { Clock, Log, Metrics } from '../ports.ts';
import type { HmacPort } from '../webhook/hmac.ts';
import type { SecretSource } from '../webhook/ports.ts';
import { readCallBody } from './body.ts';
import type { ReplayCache } from './replay_cache.ts';
import {
  hashOfSignature,
  refusalOfCall,
  SIGNATURE_HEADER,
  SITE_HEADER,
  type SignatureRefusal,
  TIMESTAMP_HEADER,
} from './signature.ts';
import { SiteBook } from './sites.ts';
import type { Call, CallSite, CallStore, RecordedCall } from './store.ts';

export interface CallPorts {
  readonly store: CallStore;
  /** One that does not fail: a shared one stands behind a GuardedReplayCache. */
  readonly cache: ReplayCache;
  readonly secretOf: SecretSource;
  readonly hmac: HmacPort;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly now: Clock;
}

const MAX_CALL_BYTES = 64 * 1024;
/** A flush carries at most this much payload: 256 of the largest would be 16 MB in one statement. */
const MAX_FLUSH_CHARS = 4 * 1024 * 1024;
const MS_PER_SEC = 1_000;
const JSON_TYPE = /^application\/json(?:\s*;\s*charset="?utf-8"?)?\s*$/i;
/** As the table has it; what cannot be a site is not worth a question. */
const SITE_ID = /^[A-Za-z0-9_:@-]{1,200}$/;
/** The label of everybody who is no site of ours: ids from outside would make metrics without end. */
const NO_SITE = 'unknown';

type Refusal = SignatureRefusal | 'unknown_site' | 'missing_signature' | 'no_secret';

const HINTS: Partial<Record<Refusal, string>> = {
  missing_signature: `Send ${SIGNATURE_HEADER}, once.`,
  malformed_signature: `${SIGNATURE_HEADER} is 64 lower-case hex characters, once.`,
  malformed_timestamp: `${TIMESTAMP_HEADER} is the time in whole seconds, once.`,
  stale: `${TIMESTAMP_HEADER} is too far from now: compare the clocks.`,
};

export class CallDoor {
  readonly #ports: CallPorts;
  readonly #sites: SiteBook;
  readonly #coalescer: Coalescer<Call, RecordedCall>;

  constructor(ports: CallPorts) {
    this.#ports = ports;
    this.#sites = new SiteBook(ports.store, ports.now);
    this.#coalescer = new Coalescer((calls) => ports.store.recordCalls(calls), {
      weigh: (call) => call.payload.length,
      maxWeight: MAX_FLUSH_CHARS,
      // Not the database's state but something in the batch: its neighbours are not to suffer for it.
      isSpoiled: (error) => toDoorError(error).kind.code === 'internal',
    });
  }

  routes(path = '/call-events'): (Route & { readonly maxBodyBytes: number })[] {
    return [
      { method: 'POST', path, maxBodyBytes: MAX_CALL_BYTES, handle: (request) => this.#receive(request) },
    ];
  }

  /** For shutdown: everything that was accepted gets its answer, nothing new is taken. */
  drain(): Promise<void> {
    return this.#coalescer.drain();
  }

  async #receive(request: DoorRequest): Promise<DoorResponse> {
    let siteId = NO_SITE;
    try {
      refuseOtherTypes(request);
      const site = await this.#findSite(request);
      siteId = site.site_id;
      return await this.#record(await this.#read(request, site));
    } catch (error) {
      const { kind } = toDoorError(error);
      // A refused signature has been counted with its reason.
      if (kind.code !== 'bad_signature')
        this.#count(siteId, kind.http >= 500 ? 'failed' : 'refused', kind.code);
      throw error;
    }
  }

  async #findSite({ headers }: DoorRequest): Promise<CallSite> {
    const siteId = headers[SITE_HEADER];
    const isId = typeof siteId === 'string' && SITE_ID.test(siteId);
    const site = isId ? await this.#sites.find(siteId) : undefined;
    if (site?.is_active !== true) throw this.#refused(NO_SITE, 'unknown_site');
    return site;
  }

  async #read(request: DoorRequest, site: CallSite): Promise<Call> {
    const signatureHash = await this.#verify(request, site);
    const { eventId, kind, occurredAt, payload } = readCallBody(request.body);
    if (site.kinds !== null && !site.kinds.includes(kind))
      throw new DoorError('invalid_input', `kind must be one of ${site.kinds.join(', ')}.`);
    return { siteId: site.site_id, eventId, kind, payload, occurredAt, signatureHash };
  }

  /** The hash of a signature that is good; null where there is none and the site need not sign. */
  async #verify({ headers, body }: DoorRequest, site: CallSite): Promise<string | null> {
    const { [SIGNATURE_HEADER]: signature, [TIMESTAMP_HEADER]: timestamp } = headers;
    if (signature === undefined && !site.require_signature) return null;
    if (typeof signature !== 'string') throw this.#refused(site.site_id, 'missing_signature');
    const { hmac, now, secretOf, log } = this.#ports;
    const secrets = site.secret_names.map(secretOf).filter((value) => value !== undefined && value !== '');
    if (secrets.length === 0) {
      log.error('a call site has no secret', { site_id: site.site_id, names: site.secret_names });
      throw this.#refused(site.site_id, 'no_secret');
    }
    const call = { site: site.site_id, timestamp: typeof timestamp === 'string' ? timestamp : '', body };
    const nowSec = Math.floor(now() / MS_PER_SEC);
    const refusal = await refusalOfCall(call, signature, secrets as string[], hmac, nowSec);
    if (refusal !== undefined) throw this.#refused(site.site_id, refusal);
    return hashOfSignature(signature, hmac);
  }

  async #record(call: Call): Promise<DoorResponse> {
    if (call.signatureHash === null) return this.#answer(call, await this.#coalescer.submit(call));
    const { cache } = this.#ports;
    const key = `${call.siteId}:${call.signatureHash}`;
    const claim = await cache.claim(key);
    if (claim === 'done') return this.#noop(call, 'replay_cache');
    let recorded: RecordedCall;
    try {
      recorded = await this.#coalescer.submit(call);
    } catch (error) {
      // What failed is no replay when it comes again. Somebody else's claim is theirs to give up.
      if (claim === 'claimed') void cache.release(key);
      throw error;
    }
    // Committed, by us or by whoever was first. The answer does not wait for the cache.
    if (recorded.outcome !== 'event_conflict') void cache.done(key);
    else if (claim === 'claimed') void cache.release(key);
    return this.#answer(call, recorded);
  }

  #answer(call: Call, { id, outcome }: RecordedCall): DoorResponse {
    if (outcome === 'duplicate') return this.#noop(call, 'idempotent_conflict');
    if (outcome === 'event_conflict') throw new DoorError('event_conflict');
    this.#count(call.siteId, 'recorded', '');
    return jsonResponse(200, { status: 'recorded', id });
  }

  /** The sender is told the same whoever knew; only the metrics tell the cache from the database. */
  #noop(call: Call, knownBy: 'replay_cache' | 'idempotent_conflict'): DoorResponse {
    this.#count(call.siteId, 'noop', knownBy);
    return jsonResponse(200, { status: 'noop', reason: 'idempotent_conflict' });
  }

  /** To the outside an unknown site and a wrong signature look alike. */
  #refused(site: string, reason: Refusal): DoorError {
    this.#count(site, 'refused', reason);
    return new DoorError('bad_signature', HINTS[reason]);
  }

  #count(site: string, result: 'recorded' | 'noop' | 'refused' | 'failed', reason: string): void {
    this.#ports.metrics.count('call_events_total', { site, result, reason });
  }
}

function refuseOtherTypes({ headers }: DoorRequest): void {
  const type = headers['content-type'];
  if (typeof type !== 'string' || !JSON_TYPE.test(type)) throw new DoorError('unsupported_media_type');
  // Never inflated: a small body could become a large one.
  if (headers['content-encoding'] !== undefined) throw new DoorError('unsupported_media_type');
}
