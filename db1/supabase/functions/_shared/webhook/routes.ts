// The webhook door: POST /webhooks/:endpoint, and the handshake that Meta asks for with GET. The signature over the raw
// bytes comes first, then the JSON, then the record; 2xx is said only after the commit.

import { AnswerCache } from '../answer_cache.ts';
import { inTime } from '../deadline.ts';
import { HttpError } from '../errors.ts';
import type { Inbox } from '../inbox/inbox.ts';
import { eventMessage } from '../inbox/message.ts';
import { JsonError } from '../json.ts';
import { mapSome } from '../limiter.ts';
import type { Log, Metrics, Tracer, Turn } from '../ports.ts';
import {
  DELIVERY_MS,
  type HttpRequest,
  type HttpResponse,
  JSON_TYPE,
  jsonResponse,
  type Route,
  refusalOf,
  requireType,
} from '../router.ts';
import { maySign, type UnsignedLimit } from '../unsigned.ts';
import { toHex } from './bytes.ts';
import type { HmacPort } from './hmac.ts';
import { Inline, type InlinePorts } from './inline.ts';
import { tellRecorded } from './outcome.ts';
import type { Delivery, Endpoint, Recorded, WebhookStore } from './ports.ts';
import { EVENTS_PER_HANDLER } from './processor.ts';
import type { Provider, ReadEvent, Refusal, SignedRequest, Verification, VerifyContext } from './provider.ts';
import { handshake, providerNamed } from './providers.ts';
import { Recorder } from './record.ts';
import { type GoodSecrets, minSecretChars, type SecretPorts, Secrets } from './secrets.ts';
import { signedUrl, type WebhookRequest } from './signed_url.ts';
import { traceRecorded } from './trace.ts';

export interface WebhookPorts extends Pick<InlinePorts, 'runTypescript' | 'share'>, SecretPorts {
  readonly store: Pick<WebhookStore, 'findEndpoint' | 'record' | 'processEvent' | 'findReply'>;
  readonly hmac: HmacPort;
  /** Where deliveries go while DB2 is away, for endpoints that accept them then; without it they are refused. */
  readonly inbox?: Inbox | undefined;
  /** Told after new events of a queued endpoint have been committed. */
  readonly wake: () => void;
  readonly unsigned?: UnsignedLimit | undefined;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly tracer?: Tracer;
  readonly turn?: Turn;
}

/** No endpoint takes more. Each has a limit of its own, by default what its provider says it sends. */
export const MAX_WEBHOOK_BYTES = 10 * 1024 * 1024;
/** While the look for an endpoint takes long, the last answer is believed for so long. */
const ENDPOINT_STALE_MS = 60_000;

/** Of a delivery, which may have a thousand events, so many stand in line for their handlers: another delivery waits behind few. */
const EVENTS_PER_DELIVERY = EVENTS_PER_HANDLER;

const PLAIN_TEXT = 'text/plain; charset=utf-8';
const FORM_TYPE = /^application\/x-www-form-urlencoded(?:\s*;\s*charset="?utf-8"?)?\s*$/i;

const HINTS: Readonly<Record<Refusal, string>> = {
  missing_signature: 'missing_signature: the signature header is not there.',
  malformed_signature: 'malformed_signature: the signature header is not in its canonical form.',
  bad_signature: 'bad_signature: no configured secret gives this signature for these bytes.',
  stale: 'stale: the signed time is too far from now.',
  no_secret: 'no_secret: the endpoint has no secret to compare with.',
  body_hash_mismatch: 'body_hash_mismatch: the body is not the one that was signed.',
};

/** Another secret could make these good. */
const DEPENDS_ON_SECRET: ReadonlySet<Refusal> = new Set<Refusal>(['bad_signature', 'no_secret']);

interface Taken {
  readonly endpoint: Endpoint;
  readonly provider: Provider;
  readonly events: readonly ReadEvent[];
  /** Undefined where the inbox has them. */
  readonly recorded: readonly Recorded[] | undefined;
  /** Set where there was nothing to record. */
  readonly answer?: HttpResponse;
}

interface EventAnswer {
  readonly event_id: string;
  readonly status: string;
}

/** Of several events in one delivery, the first of these that occurs is what the delivery is called. */
const LOUDEST_FIRST = [
  'accepted',
  'recorded',
  'processed',
  'skipped',
  'quarantined',
  'body_differs',
  'duplicate',
];

/** Providers stop by themselves after some days; an operator ends it sooner. */
const DEAD_LETTER_HINT =
  'The event is recorded as a dead letter. Deliveries get this answer until an operator replays or skips it.';

export class WebhookRoutes {
  readonly #ports: WebhookPorts;
  /** By name: one that is switched off stops within a second, or as soon as the database answers again. */
  readonly #endpoints: AnswerCache<Endpoint | undefined>;
  readonly #secrets: Secrets;
  readonly #recorder: Recorder;
  readonly #inline: Inline;
  readonly #deliveryMs: number;

  constructor(ports: WebhookPorts, deliveryMs = DELIVERY_MS) {
    this.#ports = ports;
    this.#deliveryMs = deliveryMs;
    const { inbox, store } = ports;
    const find = (name: string) => store.findEndpoint(name);
    this.#endpoints = new AnswerCache(
      inbox === undefined ? find : (name) => inbox.findDoor('endpoint', name, () => find(name)),
      ports.now,
      ENDPOINT_STALE_MS,
    );
    this.#secrets = new Secrets(inbox ? { ...ports, findSecret: inbox.findSecret(ports.findSecret) } : ports);
    this.#recorder = new Recorder((deliveries) => ports.store.record(deliveries), ports.turn);
    this.#inline = new Inline(ports);
  }

  routes(): (Route & { maxBodyBytes: number })[] {
    const route = (method: string, handle: Route['handle']) => ({
      method,
      path: '/webhooks/:endpoint',
      maxBodyBytes: MAX_WEBHOOK_BYTES,
      checkTarget: (request: HttpRequest, name: string) => this.#checkEndpoint(request, name),
      handle,
    });
    return [
      route('POST', (request, name) => this.#deliver(request, name)),
      route('GET', (request, name) => this.#shakeHands(request, name)),
    ];
  }

  /** For shutdown: everything that was accepted gets its answer, nothing new is taken. */
  drain(): Promise<void> {
    return this.#recorder.drain();
  }

  async #deliver(request: WebhookRequest, name: string): Promise<HttpResponse> {
    let isRecorded = false;
    const answered = async (): Promise<HttpResponse> => {
      const taken = await this.#take(request, name);
      isRecorded = true;
      return taken.answer ?? this.#answer(taken);
    };
    // A handler that takes longer keeps running. A redelivery joins that attempt, or is told the event's state, so the effect
    // happens once.
    const late = () => new HttpError(isRecorded ? 'processing_failed' : 'database_unavailable');
    return inTime(this.#deliveryMs, answered(), late);
  }

  /** Everything up to the commit. */
  async #take(request: WebhookRequest, name: string): Promise<Taken> {
    const startedMs = this.#ports.now();
    const endpoint = await this.#find(name);
    const provider = this.#providerOf(endpoint);
    checkBody(request, endpoint, provider);
    const signed = { ...request, url: signedUrl(request, endpoint, provider) };
    const context: VerifyContext = {
      port: this.#ports.hmac,
      nowSec: Math.floor(this.#ports.now() / 1000),
      ...(endpoint.scheme !== null && { scheme: endpoint.scheme }),
    };
    const signature = await this.#verify(signed, endpoint, provider, context);
    const challenge = provider.challenge?.(signed);
    const nothing = { endpoint, provider, events: [], recorded: [] };
    if (challenge !== undefined) return { ...nothing, answer: textResponse(challenge, PLAIN_TEXT) };
    const { events, invalid } = await readEvents(signed, provider, context);
    if (events.length === 0)
      return { ...nothing, answer: jsonResponse(200, { status: 'skipped', events: [] }) };
    const delivery = { webhookId: endpoint.webhook_id, events, body: request.body, signature };
    const recorded = await this.#record(endpoint, delivery, startedMs);
    if (recorded !== undefined) {
      const isNew = tellRecorded(endpoint, events, recorded, this.#ports);
      if (isNew && endpoint.mode === 'queued') this.#ports.wake();
      traceRecorded(endpoint, events, recorded, startedMs, this.#ports);
    }
    if (invalid !== undefined) throw invalid;
    return { endpoint, provider, events, recorded };
  }

  /** Undefined where DB2 could not record it, and the inbox has it. */
  #record(endpoint: Endpoint, delivery: Delivery, startedMs: number): Promise<Recorded[] | undefined> {
    const { inbox } = this.#ports;
    const record = () => this.#recorder.record(delivery);
    if (inbox === undefined || endpoint.on_outage !== 'accept') return record();
    return inbox.record(startedMs, record, (receivedAt) =>
      eventMessage(endpoint, delivery, receivedAt, inbox.toBase64),
    );
  }

  async #checkEndpoint(request: HttpRequest, name: string): Promise<number> {
    const late = () => new HttpError('database_unavailable');
    const { scheme, max_body_bytes } = await inTime(this.#deliveryMs, this.#find(name), late);
    if (!maySign(request.headers, scheme?.header)) await this.#ports.unsigned?.check(request);
    return max_body_bytes;
  }

  async #find(name: string): Promise<Endpoint> {
    const endpoint = await this.#endpoints.get(name);
    if (endpoint === undefined || !endpoint.is_active) throw new HttpError('unknown_endpoint');
    return endpoint;
  }

  #providerOf(endpoint: Endpoint): Provider {
    const provider = providerNamed(endpoint.provider);
    if (provider !== undefined) return provider;
    // Without a verifier nothing can be let in.
    this.#ports.log.error('the endpoint names an unknown provider', {
      webhook_id: endpoint.webhook_id,
      provider: endpoint.provider,
    });
    throw new HttpError('bad_signature', HINTS.no_secret);
  }

  /**
   * The signature that matched. Throws 401 for everything else, and 429 once its address has sent too much of that. Where only DB2
   * knows a secret and is away, it throws 503 and counts nothing: the delivery may be genuine.
   */
  async #verify(
    signed: SignedRequest & HttpRequest,
    endpoint: Endpoint,
    provider: Provider,
    context: VerifyContext,
  ): Promise<string> {
    const { log, unsigned } = this.#ports;
    const where = { webhook_id: endpoint.webhook_id, endpoint: endpoint.name };
    const { values, areAll } = await this.#secretsOf(endpoint, endpoint.secret_names);
    if (values.length === 0) {
      if (!areAll) throw new HttpError('database_unavailable');
      await unsigned?.count(signed);
      throw new HttpError('bad_signature', HINTS.no_secret);
    }
    const verification = await verified(signed, values, provider, context).catch(async (error: unknown) => {
      if (error instanceof HttpError) await unsigned?.count(signed);
      throw error;
    });
    if (verification.ok) return verification.signature;
    if (!areAll && DEPENDS_ON_SECRET.has(verification.reason)) throw new HttpError('database_unavailable');
    // Before the log: a flood writes no more lines than its address may.
    await unsigned?.count(signed);
    log.info('signature refused', { ...where, reason: verification.reason, detail: verification.detail });
    throw new HttpError('bad_signature', HINTS[verification.reason]);
  }

  #secretsOf(endpoint: Endpoint, names: readonly string[]): Promise<GoodSecrets> {
    const where = { webhook_id: endpoint.webhook_id, endpoint: endpoint.name };
    return this.#secrets.good(
      names,
      minSecretChars(providerNamed(endpoint.provider)),
      this.#ports.log,
      where,
    );
  }

  async #answer({ endpoint, provider, events, recorded }: Taken): Promise<HttpResponse> {
    const answers = await mapSome(events, EVENTS_PER_DELIVERY, async (event, index): Promise<EventAnswer> => {
      const row = recorded?.[index];
      const status = row === undefined ? 'accepted' : await this.#statusOf(endpoint, event, row);
      return { event_id: event.eventId, status };
    });
    const isAny = (name: string): boolean => answers.some(({ status }) => status === name);
    if (isAny('failed')) throw new HttpError('processing_failed');
    if (isAny('dead_letter')) throw new HttpError('processing_failed', DEAD_LETTER_HINT);
    const reply = provider.reply?.(events);
    if (reply !== undefined)
      return textResponse((await this.#replyOf(endpoint, recorded)) ?? reply.empty, reply.contentType);
    const status = LOUDEST_FIRST.find(isAny);
    return jsonResponse(200, { status, events: answers });
  }

  /** Null for an event that was queued or accepted: its handler has not run yet, and the provider does not wait. */
  async #replyOf({ mode }: Endpoint, [row]: readonly Recorded[] = []): Promise<string | null> {
    return mode === 'queued' || row === undefined ? null : this.#ports.store.findReply(row.id);
  }

  async #statusOf(endpoint: Endpoint, event: ReadEvent, row: Recorded): Promise<string> {
    const { outcome } = row;
    if (endpoint.mode === 'queued' || outcome === 'skipped' || outcome === 'body_differs') return outcome;
    const result = await this.#inline.process(endpoint, event, row);
    const isGood = result !== 'failed' && result !== 'dead_letter';
    return isGood && outcome === 'duplicate' ? 'duplicate' : result;
  }

  async #shakeHands(request: WebhookRequest, name: string): Promise<HttpResponse> {
    const endpoint = await this.#find(name);
    if (endpoint.provider !== 'whatsapp')
      return refusalOf({ refusal: new HttpError('method_not_allowed'), allow: 'POST' }, request.requestId);
    const { verify_token_name: tokenName } = endpoint;
    if (tokenName === null)
      this.#ports.log.error('the endpoint names no verify token', { webhook_id: endpoint.webhook_id });
    const { values, areAll } = await this.#secretsOf(endpoint, tokenName === null ? [] : [tokenName]);
    const challenge = handshake(request.query ?? '', values[0]);
    if (challenge === undefined) {
      if (!areAll) throw new HttpError('database_unavailable');
      await this.#ports.unsigned?.count(request);
      throw new HttpError('handshake_refused');
    }
    return textResponse(challenge, PLAIN_TEXT);
  }
}

function textResponse(body: string, contentType: string): HttpResponse {
  return {
    status: 200,
    headers: {
      'content-type': contentType,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    },
    body,
  };
}

function checkBody(request: HttpRequest, endpoint: Endpoint, provider: Provider): void {
  requireType(request, provider.takesForms === true ? [JSON_TYPE, FORM_TYPE] : [JSON_TYPE]);
  if (request.body.length > endpoint.max_body_bytes) throw new HttpError('too_large');
}

async function verified(
  signed: SignedRequest,
  secrets: readonly string[],
  provider: Provider,
  context: VerifyContext,
): Promise<Verification> {
  try {
    return await provider.verify(signed, secrets, context);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    // Nothing is proven, so nothing is kept.
    throw new HttpError('invalid_json', `The body was refused: ${error.message}.`);
  }
}

interface Read {
  readonly events: readonly ReadEvent[];
  /** Set if the body is not JSON: it is kept, and refused. */
  readonly invalid?: HttpError;
}

async function readEvents(signed: SignedRequest, provider: Provider, context: VerifyContext): Promise<Read> {
  try {
    return { events: await provider.read(signed, context) };
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const hash = toHex(await context.port.sha256(signed.body));
    const event: ReadEvent = {
      eventId: `invalid:${hash}`,
      eventType: 'unknown',
      occurredAt: null,
      payload: null,
      hash,
      dedupeHash: null,
      quarantine: error.reason,
    };
    const invalid = new HttpError('invalid_json', `The body was kept and refused: ${error.message}.`);
    return { events: [event], invalid };
  }
}
