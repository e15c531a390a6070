// What the members of a command and their supervisor say to each other, over the channel of node:child_process.

import type { Snapshot } from '../metrics.ts';

/** What members tell each other: the sampler's samples, and sessions that were signed out. */
export type Topic = 'sample' | 'session_ended';

export type Question =
  /** Of each take four numbers: which of RATE_LIMITS, the network's two words, and the tokens; 0 only looks. Answer: waits in ms. */
  | { readonly take: readonly number[] }
  /** One more stream of this address. Answer: whether it may. */
  | { readonly enter: string }
  /** The asker's own numbers. Answer: those of all others, and of the processes that have ended. */
  | { readonly collect: Snapshot };

export type FromMember =
  /** It hears what it is told from now on: what was said before, while it loaded, is lost. */
  | { readonly kind: 'hears' }
  /** It takes requests, or works. */
  | { readonly kind: 'listening'; readonly url?: string; readonly port?: number }
  /** Its databases answer too. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'ask'; readonly id: number; readonly question: Question }
  | { readonly kind: 'left'; readonly address: string }
  /** What it was asked to count; without an id, its last words. */
  | { readonly kind: 'snapshot'; readonly id?: number; readonly own: Snapshot }
  | { readonly kind: 'news'; readonly topic: Topic; readonly news: unknown };

export type ToMember =
  /** `isRestart`: others take the new connections, so it waits for its own to come to rest. */
  | { readonly kind: 'stop'; readonly isRestart: boolean }
  | { readonly kind: 'answer'; readonly id: number; readonly answer: unknown }
  | { readonly kind: 'count'; readonly id: number }
  | { readonly kind: 'news'; readonly topic: Topic; readonly news: unknown };

/** In the order in which a take names them. */
export const RATE_LIMITS = ['claims', 'deliveries', 'sign_ins'] as const;
export type RateLimitName = (typeof RATE_LIMITS)[number];
/** Numbers of one take. */
export const TAKE_WORDS = 4;
