// How much the server takes at once. Each group of routes has a budget of its own, so that a flood at one leaves the others
// their room: claims are admitted however many webhooks are being sent.

import { HttpError } from '#core/errors.ts';
import type { Match } from '#core/router.ts';
import { MAX_WEBHOOK_BYTES } from '#core/webhook/routes.ts';
import type { RouteGroup } from '../metric_names.ts';
import { type Part, shareOf, WHOLE } from '../processes/part.ts';
import { LargeBodies } from './large_bodies.ts';
import { groupOf } from './metered_router.ts';

/** What the coalescer of claims lets wait of all pools: beyond it a client floods us, or the database is stuck. */
export const DEFAULT_MAX_REQUESTS = 20_000;

export type BudgetName = 'claims' | 'events' | 'calls' | 'admin' | 'pages' | 'health' | 'metrics';

export interface Limits {
  /** Requests under way, from their headers to their answer. Streams do not count: their routes have limits of their own. */
  readonly maxRequests: number;
  /** What the bodies of these requests may take together. */
  readonly maxBytes: number;
}

const MB = 1024 * 1024;

/** Of each group: its part of the requests that claims may have, and its bytes; all processes of a command have them together. */
const SHARES: Readonly<Record<BudgetName, readonly [part: number, maxBytes: number]>> = {
  // A claim has about 80 bytes and 4 KB at most: 4,000 of the largest.
  claims: [1, 16 * MB],
  // What the coalescer of events lets wait; 64 bodies of the largest kind, whose senders need no key.
  events: [0.5, 64 * MB],
  // The same; 256 bodies of the largest kind.
  calls: [0.5, 16 * MB],
  // People and their scripts, with bodies of 64 KB at most.
  admin: [0.05, 8 * MB],
  // A crowd reloads pages and asks for pools; these requests have no bodies.
  pages: [0.5, MB],
  // Orchestrators and Prometheus take a refusal for a dead process, so no other group can use up their room.
  health: [0.05, MB],
  metrics: [0.05, MB],
};

/** However many processes share the bytes, each has room for the largest body that an endpoint may allow. */
const LEAST_BYTES: Partial<Record<BudgetName, number>> = { events: MAX_WEBHOOK_BYTES };

const BUDGET_OF: Readonly<Record<RouteGroup, BudgetName>> = {
  claims: 'claims',
  webhooks: 'events',
  calls: 'calls',
  admin: 'admin',
  health: 'health',
  metrics: 'metrics',
  pools: 'pages',
  pages: 'pages',
  none: 'pages',
};

/** Made once: a refusal has to stay cheaper than the work it refuses. */
export const TOO_MANY: Match = { refusal: new HttpError('too_many_requests') };

export class Budget {
  readonly #limits: Limits;
  #requests = 0;
  #bytes = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** Counts one more request; false where it is one too many. Either way it has to leave() once it is answered. */
  enter(): boolean {
    return ++this.#requests <= this.#limits.maxRequests;
  }

  /** False if so many bytes do not fit; then they are not held. */
  hold(bytes: number): boolean {
    if (this.#bytes + bytes > this.#limits.maxBytes) return false;
    this.#bytes += bytes;
    return true;
  }

  /** Gives back one request and the bytes that it held. */
  leave(bytes: number): void {
    this.#requests--;
    this.#bytes -= bytes;
  }
}

export class Admission {
  readonly largeBodies: LargeBodies;
  readonly #budgets: Readonly<Record<BudgetName, Budget>>;
  /** By the path of the route, so that a request costs one look. */
  readonly #byPath = new Map<string, Budget>();

  /**
   * `maxRequests` is for claims, the other groups get their part of it; `limits` replaces what a group would get. Of all that this
   * process has its share.
   */
  constructor(
    maxRequests = DEFAULT_MAX_REQUESTS,
    limits: Partial<Record<BudgetName, Limits>> = {},
    largeBodies = new LargeBodies(),
    part: Part = WHOLE,
  ) {
    this.largeBodies = largeBodies;
    const entries = Object.entries(SHARES).map(([name, [portion, maxBytes]]) => {
      const share = {
        maxRequests: shareOf(Math.floor(portion * maxRequests), part),
        maxBytes: Math.max(shareOf(maxBytes, part), LEAST_BYTES[name as BudgetName] ?? 0),
      };
      return [name, new Budget(limits[name as BudgetName] ?? share)];
    });
    this.#budgets = Object.fromEntries(entries) as Record<BudgetName, Budget>;
  }

  budgetOf(match: Match): Budget {
    if (match.refusal !== undefined) return this.#budgets.pages;
    const { path } = match.route;
    return this.#byPath.get(path) ?? this.#remember(path);
  }

  #remember(path: string): Budget {
    const budget = this.#budgets[BUDGET_OF[groupOf(path)]];
    this.#byPath.set(path, budget);
    return budget;
  }
}
