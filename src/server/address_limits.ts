// What one address may do: so many at once, then a steady rate. Callers that vouch for many people (service_role, the admin key)
// and valid signatures are not limited here; admission.ts bounds what all addresses together may do.

import { type ErrorCode, HttpError } from '#core/errors.ts';
import type { Clock, Log, Metrics } from '#core/ports.ts';
import type { UnsignedLimit } from '#core/unsigned.ts';
import { isLoopback, type Network, networkOf, type Source, textOf } from './addresses.ts';
import { OneAddressWatch } from './one_address.ts';
import type { ProxySettings } from './proxy.ts';
import { type Rate, TokenBuckets } from './token_buckets.ts';

export type LimitName = 'claims' | 'deliveries' | 'sign_ins' | 'streams';

/** False switches a limit off; what is left out has its default. */
export interface LimitSettings {
  /** Claims of anonymous and signed-in buyers. */
  readonly claims?: Rate | false;
  /** Deliveries without a signature, or with a wrong one. */
  readonly deliveries?: Rate | false;
  /** Wrong admin keys. */
  readonly signIns?: Rate | false;
  /** Streams that are open at once. */
  readonly streams?: number | false;
  /** Also limits what comes from this very machine. */
  readonly loopback?: boolean;
}

export const DEFAULT_LIMITS = {
  // A buyer needs one. A hundred leave room for a household, an office or a small carrier network behind one address.
  claims: { burst: 100, perSec: 10 },
  deliveries: { burst: 100, perSec: 10 },
  // A person mistypes now and then.
  signIns: { burst: 5, perSec: 5 },
  // A page that is refused one asks once in a few seconds instead.
  streams: 200,
} as const satisfies LimitSettings;

/** Of each limit that is a rate: how many networks it tells apart. Twice the million that claims have to, so that sets rarely fill. */
const NETWORKS = { claims: 2 ** 21, deliveries: 2 ** 18, sign_ins: 2 ** 16 } as const;

const CODES: Partial<Record<LimitName, ErrorCode>> = { sign_ins: 'too_many_attempts' };
const MS_PER_SEC = 1_000;

export interface LimitPorts {
  readonly proxy: ProxySettings;
  readonly metrics: Metrics;
  readonly log: Log;
  /** Not the clock of the machine: set back, it would keep clients waiting. */
  readonly now?: Clock;
}

export class AddressLimits {
  /** Wrong admin keys; undefined where they are not limited. */
  readonly signIns: RateLimit | undefined;
  readonly deliveries: RateLimit | undefined;
  readonly streams: StreamLimit | undefined;
  readonly #claims: RateLimit | undefined;
  readonly #watch: OneAddressWatch;
  readonly #ports: LimitPorts;

  constructor(settings: LimitSettings, ports: LimitPorts) {
    const { now = () => performance.now() } = ports;
    const given = { ...DEFAULT_LIMITS, ...settings };
    const shared = { ...ports, now, loopback: settings.loopback ?? false };
    const open = (name: keyof typeof NETWORKS, rate: Rate | false) =>
      rate === false ? undefined : new RateLimit(name, rate, NETWORKS[name], shared);
    this.#claims = open('claims', given.claims);
    this.deliveries = open('deliveries', given.deliveries);
    this.signIns = open('sign_ins', given.signIns);
    this.streams = given.streams === false ? undefined : new StreamLimit(given.streams, shared);
    this.#watch = new OneAddressWatch(now);
    this.#ports = ports;
  }

  /** Counts what a buyer claims; throws where its address has claimed too much. */
  readonly admitClaim = (source: Source, slots = 1): void => {
    const network = networkOf(source, this.#ports.proxy);
    this.#watchProxy(source, network);
    this.#claims?.takeFor(network, slots);
  };

  /** All that the buckets will ever take. */
  get bytes(): number {
    const limits = [this.#claims, this.deliveries, this.signIns];
    return limits.reduce((sum, limit) => sum + (limit?.bytes ?? 0), 0);
  }

  /** A program on this machine is not a proxy, unless it says for whom it asks. */
  #watchProxy({ headers }: Source, network: Network): void {
    const { proxy, metrics, log } = this.#ports;
    if (proxy.trustedProxies > 0) return;
    if (isLoopback(network) && headers['x-forwarded-for'] === undefined && headers.forwarded === undefined)
      return;
    if (!this.#watch.see(network)) return;
    metrics.count('sluice_claims_one_address_minutes_total', {});
    log.warn('one address makes most claims and no proxy is declared', {
      address: textOf(network),
      hint: 'if it is your proxy, set SLUICE_TRUSTED_PROXIES: all buyers behind it share one limit',
    });
  }
}

interface Shared extends LimitPorts {
  readonly now: Clock;
  readonly loopback: boolean;
}

export class RateLimit implements UnsignedLimit {
  readonly #name: LimitName;
  readonly #rate: Rate;
  readonly #buckets: TokenBuckets;
  readonly #shared: Shared;
  /** By the seconds to wait. Made once each: a refusal has to stay cheaper than the work it refuses. */
  readonly #refusals = new Map<number, HttpError>();

  constructor(name: LimitName, rate: Rate, networks: number, shared: Shared) {
    this.#name = name;
    this.#rate = rate;
    this.#buckets = new TokenBuckets(rate, networks, shared.now);
    this.#shared = shared;
  }

  get bytes(): number {
    return this.#buckets.bytes;
  }

  count(source: Source): void {
    this.takeFor(networkOf(source, this.#shared.proxy));
  }

  takeFor(network: Network, tokens = 1): void {
    if (!this.#shared.loopback && isLoopback(network)) return;
    this.#refuseFor(this.#buckets.take(network, tokens));
  }

  check(source: Source): void {
    const network = networkOf(source, this.#shared.proxy);
    if (!this.#shared.loopback && isLoopback(network)) return;
    this.#refuseFor(this.#buckets.wait(network));
  }

  #refuseFor(waitMs: number): void {
    if (waitMs <= 0) return;
    this.#shared.metrics.count('sluice_limited_total', { limit: this.#name });
    const waitSec = Math.ceil(waitMs / MS_PER_SEC);
    let refusal = this.#refusals.get(waitSec);
    if (refusal === undefined) {
      refusal = refusalOf(this.#name, policyOf(this.#rate), waitSec);
      this.#refusals.set(waitSec, refusal);
    }
    throw refusal;
  }
}

/** Each open stream has a socket, so the map of those that have some is small beside them. */
export class StreamLimit {
  readonly #most: number;
  readonly #shared: Shared;
  readonly #open = new Map<string, number>();
  readonly #refusal: HttpError;

  constructor(most: number, shared: Shared) {
    this.#most = most;
    this.#shared = shared;
    this.#refusal = refusalOf('streams', `q=${most};qu="concurrent-requests"`, 1);
  }

  /** Counts one more stream and returns how to give it back; throws where it is one too many. */
  enter(source: Source): () => void {
    const network = networkOf(source, this.#shared.proxy);
    if (!this.#shared.loopback && isLoopback(network)) return () => undefined;
    const address = textOf(network);
    const open = this.#open.get(address) ?? 0;
    if (open >= this.#most) {
      this.#shared.metrics.count('sluice_limited_total', { limit: 'streams' });
      throw this.#refusal;
    }
    this.#open.set(address, open + 1);
    return () => this.#leave(address);
  }

  #leave(address: string): void {
    const left = (this.#open.get(address) ?? 1) - 1;
    if (left === 0) this.#open.delete(address);
    else this.#open.set(address, left);
  }
}

/** A full bucket, and how long an empty one takes to be full. */
function policyOf({ burst, perSec }: Rate): string {
  return `q=${burst};w=${Math.max(1, Math.ceil(burst / perSec))}`;
}

/** The header fields are those of draft-ietf-httpapi-ratelimit-headers-11. */
function refusalOf(name: LimitName, policy: string, waitSec: number): HttpError {
  return new HttpError(CODES[name] ?? 'rate_limited', undefined, undefined, {
    'retry-after': String(waitSec),
    'ratelimit-policy': `"${name}";${policy}`,
    ratelimit: `"${name}";r=0;t=${waitSec}`,
  });
}
