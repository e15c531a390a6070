// A million slots in steps: each is a request and a transaction of its own, well under the time limit of a statement, and
// carries a request id of its own, so that it can be sent again when its answer was lost.

/** Takes about a second: a bar that counts these steps moves, and claims of the pool wait for no longer than that. */
export const SLOTS_PER_STEP = 50_000;

/** What one request takes of labels. */
export const LABELS_PER_STEP = 500;

export interface SlotStep {
  readonly slots: number;
  readonly request_id: string;
}

/** The same steps for the same arguments; at least one. */
export function slotSteps(slots: number, requestId: string, perStep = SLOTS_PER_STEP): SlotStep[] {
  const steps = Math.max(1, Math.ceil(slots / perStep));
  return Array.from({ length: steps }, (_, index) => ({
    slots: Math.min(perStep, slots - index * perStep),
    request_id: `${requestId}.${index + 1}`,
  }));
}
