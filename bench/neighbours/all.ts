import { heldRequestId } from './held_request_id.ts';
import { largePosts } from './large_posts.ts';
import { lockedSlots } from './locked_slots.ts';
import { lostPools } from './lost_pools.ts';
import { madeUpNames } from './made_up_names.ts';
import { metricsReaders } from './metrics_readers.ts';
import type { Neighbour } from './neighbour.ts';
import { rebuildElsewhere } from './rebuild_elsewhere.ts';
import { redeliveredInlineEvent } from './redelivered_inline_event.ts';
import { slowCommitHook } from './slow_commit_hook.ts';
import { slowInlineEffects } from './slow_inline_effects.ts';
import { slowQueuedHandler } from './slow_queued_handler.ts';
import { unreachableCommitFunction } from './unreachable_commit_function.ts';
import { unsignedFlood } from './unsigned_flood.ts';

/** In the order of their findings. */
export const ALL: readonly Neighbour[] = [
  ...[slowInlineEffects, redeliveredInlineEvent, heldRequestId, rebuildElsewhere, lostPools],
  ...[unreachableCommitFunction, slowCommitHook, slowQueuedHandler, lockedSlots],
  ...[metricsReaders, unsignedFlood, madeUpNames, largePosts],
];
