// Which scene the page shows, from what is known. No more than that is decided here.

import type { GiveBack, Payment, Progress } from './purchase.ts';
import { standingOf } from './standing.ts';
import type { Claim } from './store.ts';
import type { PoolNow, Watched } from './watch.ts';

export type Scene =
  | { readonly kind: 'loading' }
  | { readonly kind: 'unreachable' }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'countdown'; readonly opensAt: number }
  /** Asking keeps the scene, so that the button stays the same button. */
  | {
      readonly kind: 'open';
      readonly isAsking: boolean;
      readonly hasTrouble: boolean;
      /** From 0 to 1, while the device solves the pool's challenge. */
      readonly solved?: number | undefined;
    }
  /** `pay`: held until it is paid. `paying`: the payment is on its way to us. `held`: the ticket is being written. */
  | {
      readonly kind: 'pay' | 'paying' | 'held';
      readonly claim: Claim;
      readonly hasTrouble: boolean;
      readonly since: number;
      readonly giveBack: GiveBack;
      readonly payment: Payment;
    }
  | { readonly kind: 'ticket'; readonly claim: Claim; readonly isMissing: boolean }
  /** `refund`: money came that buys nothing. `voided`: the ticket was taken back. */
  | { readonly kind: 'ended' | 'refund' | 'voided'; readonly claim: Claim }
  /** Only for people who are signed in; `isGuest` where an anonymous sign-in will not do. */
  | { readonly kind: 'sign_in'; readonly isGuest: boolean }
  | { readonly kind: 'sold_out' }
  | { readonly kind: 'closed' }
  | { readonly kind: 'refused'; readonly code: string };

/** What the stream told last may be a moment older than the refusal; after this long it would have told of the change. */
const STALE_MS = 4_000;
/** Refusals that are about the pool and not about the buyer. */
const SHORTAGES: ReadonlySet<string> = new Set(['sold_out', 'not_enough', 'closed']);

export function sceneOf(
  progress: Progress,
  { pool, isConnected }: Watched,
  isSignedIn: boolean,
  now: number,
): Scene {
  switch (progress.kind) {
    case 'ticket':
      return progress;
    case 'ended':
      return { kind: sceneOfEnd(progress.claim), claim: progress.claim };
    case 'held':
      return {
        kind: sceneOfHold(progress.claim),
        claim: progress.claim,
        hasTrouble: progress.trouble,
        since: progress.since,
        giveBack: progress.giveBack,
        payment: progress.payment,
      };
    case 'asking':
      return { kind: 'open', isAsking: true, hasTrouble: progress.trouble, solved: progress.solved };
    case 'refused':
      if (!isOvertaken(progress, pool, now)) return sceneOfRefusal(progress.code);
  }
  if (pool === undefined) return { kind: isConnected ? 'loading' : 'unreachable' };
  if (pool === 'unknown') return { kind: 'unknown' };
  return sceneOfPool(pool, isSignedIn, now);
}

function sceneOfEnd(claim: Claim): 'ended' | 'refund' | 'voided' {
  const standing = standingOf(claim);
  return standing === 'refund' || standing === 'voided' ? standing : 'ended';
}

function sceneOfHold(claim: Claim): 'pay' | 'paying' | 'held' {
  const standing = standingOf(claim);
  if (standing === 'to_pay') return 'pay';
  return standing === 'paying' ? 'paying' : 'held';
}

/** A seat came back, or the pool was opened: there is something to press again. */
function isOvertaken(
  { code, at }: { code: string; at: number },
  pool: Watched['pool'],
  now: number,
): boolean {
  if (typeof pool !== 'object' || !SHORTAGES.has(code)) return false;
  return pool.status === 'open' && pool.available > 0 && now > at + STALE_MS;
}

function sceneOfRefusal(code: string): Scene {
  if (code === 'sold_out' || code === 'closed') return { kind: code };
  if (code === 'unknown_pool') return { kind: 'unknown' };
  if (code === 'auth_required' || code === 'guests_refused')
    return { kind: 'sign_in', isGuest: code === 'guests_refused' };
  return { kind: 'refused', code };
}

function sceneOfPool({ status, opens_at, require_auth }: PoolNow, isSignedIn: boolean, now: number): Scene {
  if (require_auth && !isSignedIn && (status === 'open' || status === 'not_open'))
    return { kind: 'sign_in', isGuest: false };
  const opensAt = opens_at === null ? undefined : Date.parse(opens_at);
  if (status === 'not_open' && opensAt !== undefined && now < opensAt) return { kind: 'countdown', opensAt };
  // By the clock it is open; the next telling will say so too.
  if (status === 'not_open' || status === 'open') return { kind: 'open', isAsking: false, hasTrouble: false };
  return { kind: status };
}
