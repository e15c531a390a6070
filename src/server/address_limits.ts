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

/** The tokens of a limit. Where several processes share them, the answer takes a moment. */
export interface Buckets {
  /** All that they will ever take of this process' memory. */
  readonly bytes: number;
  /** Takes so many tokens: 0 where they were there, else the milliseconds until they are. */
  take(network: Network, tokens?: number): number | Promise<number>;
  /** As take(), without taking. */
  wait(network: Network): number | Promise<number>;
}

/** The open streams of each address. */
export interface StreamCounts {
  /** Counts one more; false where it is one too many. */
  enter(address: string): boolean | Promise<boolean>;
  leave(address: string): void;
}

/** What all processes of a command have together. */
export interface SharedCounts {
  buckets(limit: keyof typeof NETWORKS): Buckets;
  readonly streams: StreamCounts;
}

export interface LimitPorts {
  readonly proxy: ProxySettings;
  readonly metrics: Metrics;
  readonly log: Log;
  /** Not the clock of the machine: set back, it would keep clients waiting. */
  readonly now?: Clock;
  /** This process has its own where left out. */
  readonly counts?: SharedCounts | undefined;
}

/** As the settings say, on this process' own; undefined and no bound where a limit is off. */
export class OwnCounts {
  readonly #given: Required<Omit<LimitSettings, 'loopback'>>;
  readonly #now: Clock;
  readonly streams: StreamCounts;

  constructor(settings: LimitSettings, now: Clock) {
    this.#given = { ...DEFAULT_LIMITS, ...settings };
    this.#now = now;
    const { streams } = this.#given;
    this.streams = new OpenStreams(streams === false ? Number.POSITIVE_INFINITY : streams);
  }

  rate(limit: keyof typeof NETWORKS): Rate | undefined {
    const { claims, deliveries, signIns } = this.#given;
    return { claims, deliveries, sign_ins: signIns }[limit] || undefined;
  }

  buckets(limit: keyof typeof NETWORKS): TokenBuckets {
    const rate = this.rate(limit);
    if (rate === undefined) throw new Error(`the limit ${limit} is off`);
    return new TokenBuckets(rate, NETWORKS[limit], this.#now);
  }
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
    const own = new OwnCounts(settings, now);
    const counts: SharedCounts = ports.counts ?? own;
    const shared = { ...ports, loopback: settings.loopback ?? false };
    const open = (name: keyof typeof NETWORKS) => {
      const rate = own.rate(name);
      return rate && new RateLimit(name, rate, counts.buckets(name), shared);
    };
    this.#claims = open('claims');
    this.deliveries = open('deliveries');
    this.signIns = open('sign_ins');
    const { streams = DEFAULT_LIMITS.streams } = settings;
    this.streams = streams === false ? undefined : new StreamLimit(streams, counts.streams, shared);
    this.#watch = new OneAddressWatch(now);
    this.#ports = ports;
  }

  /** Counts what a buyer claims; throws, or rejects, where its address has claimed too much. */
  readonly admitClaim = (source: Source, slots = 1): Promise<void> | undefined => {
    const network = networkOf(source, this.#ports.proxy);
    this.#watchProxy(source, network);
    return this.#claims?.takeFor(network, slots);
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
  readonly loopback: boolean;
}

export class RateLimit implements UnsignedLimit {
  readonly #name: LimitName;
  readonly #rate: Rate;
  readonly #buckets: Buckets;
  readonly #shared: Shared;
  /** By the seconds to wait. Made once each: a refusal has to stay cheaper than the work it refuses. */
  readonly #refusals = new Map<number, HttpError>();

  constructor(name: LimitName, rate: Rate, buckets: Buckets, shared: Shared) {
    this.#name = name;
    this.#rate = rate;
    this.#buckets = buckets;
    this.#shared = shared;
  }

  get bytes(): number {
    return this.#buckets.bytes;
  }

  count(source: Source): Promise<void> | undefined {
    return this.takeFor(networkOf(source, this.#shared.proxy));
  }

  takeFor(network: Network, tokens = 1): Promise<void> | undefined {
    if (!this.#shared.loopback && isLoopback(network)) return;
    return this.#judge(this.#buckets.take(network, tokens));
  }

  check(source: Source): Promise<void> | undefined {
    const network = networkOf(source, this.#shared.proxy);
    if (!this.#shared.loopback && isLoopback(network)) return;
    return this.#judge(this.#buckets.wait(network));
  }

  /** At once where this process has the tokens: a claim does not wait for a promise it does not need. */
  #judge(waitMs: number | Promise<number>): Promise<void> | undefined {
    if (typeof waitMs === 'number') this.#refuseFor(waitMs);
    else return waitMs.then((ms) => this.#refuseFor(ms));
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
export class OpenStreams implements StreamCounts {
  readonly #most: number;
  readonly #open = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  enter(address: string): boolean {
    const open = this.#open.get(address) ?? 0;
    if (open >= this.#most) return false;
    this.#open.set(address, open + 1);
    return true;
  }

  leave(address: string): void {
    const left = (this.#open.get(address) ?? 1) - 1;
    if (left === 0) this.#open.delete(address);
    else this.#open.set(address, left);
  }
}

export class StreamLimit {
  readonly #counts: StreamCounts;
  readonly #shared: Shared;
  readonly #refusal: HttpError;

  constructor(most: number, counts: StreamCounts, shared: Shared) {
    this.#counts = counts;
    this.#shared = shared;
    this.#refusal = refusalOf('streams', `q=${most};qu="concurrent-requests"`, 1);
  }

  /** Counts one more stream and returns how to give it back; throws, or rejects, where it is one too many. */
  enter(source: Source): (() => void) | Promise<() => void> {
    const network = networkOf(source, this.#shared.proxy);
    if (!this.#shared.loopback && isLoopback(network)) return () => undefined;
    const address = textOf(network);
    const isIn = this.#counts.enter(address);
    if (typeof isIn === 'boolean') return this.#entered(isIn, address);
    return isIn.then((is) => this.#entered(is, address));
  }

  #entered(isIn: boolean, address: string): () => void {
    if (isIn) return () => this.#counts.leave(address);
    this.#shared.metrics.count('sluice_limited_total', { limit: 'streams' });
    throw this.#refusal;
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
