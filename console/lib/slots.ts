// Slots in steps, so that a million of them is a bar that moves and not a minute of silence. A step whose answer is lost is
// sent again under its own request id.

import { type SlotStep, slotSteps } from '../../db1/supabase/functions/_shared/console/slot_steps.ts';
import { ApiError } from './api.ts';
import type { PoolView } from './shapes.ts';

/** What the server takes at once. */
export const MAX_SLOTS = 1_000_000;

const TRIES = 4;
const PAUSE_MS = 1_000;

export type SendStep = (step: SlotStep, isFirst: boolean, isLast: boolean) => Promise<PoolView>;

/** Not randomUUID: that one is missing where the console is opened over plain http from another machine. */
export const newRequestId = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join(
    '',
  );

export async function inSteps(
  slots: number,
  requestId: string,
  onProgress: (done: number) => void,
  send: SendStep,
): Promise<PoolView> {
  const steps = slotSteps(slots, requestId);
  let latest: PoolView | undefined;
  let done = 0;
  onProgress(0);
  for (const [at, step] of steps.entries()) {
    latest = await untilAnswered(() => send(step, at === 0, at === steps.length - 1));
    done += step.slots;
    onProgress(done);
  }
  // There is at least one step.
  return latest as PoolView;
}

async function untilAnswered(send: () => Promise<PoolView>): Promise<PoolView> {
  for (let tries = 1; ; tries++) {
    try {
      return await send();
    } catch (error) {
      if (tries >= TRIES || !(error instanceof ApiError) || !error.isOutage) throw error;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * tries));
    }
  }
}
