// Which messages can become tickets at all. A message is anybody's JSON: what is not fit is a dead letter with a reason,
// and never stops its neighbours.

import type { Payload } from './ports.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const MAX_ID_CHARS = 200;
/** Ours are below 400 bytes; this leaves room for what people add by hand. */
const MAX_PAYLOAD_CHARS = 64 * 1024;
/** A character can be \u and four digits in JSON, with quotes, a colon and a comma around a name and a value of one. */
const JSON_CHARS_PER_CHAR = 10;
/** A number, true, false or null. */
const LONGEST_NUMBER_CHARS = 25;

/** The payload, or why the message cannot be carried. */
export function readPayload(message: unknown): Payload | string {
  if (typeof message !== 'object' || message === null || Array.isArray(message)) {
    return 'malformed: not an object';
  }
  const { pool_id, resource_id, user_id, claim_id, verified } = message as Record<string, unknown>;
  if (!isId(pool_id)) return 'malformed: pool_id';
  if (typeof resource_id !== 'string' || !UUID.test(resource_id)) return 'malformed: resource_id';
  if (!isId(user_id)) return 'malformed: user_id';
  if (claim_id != null && (typeof claim_id !== 'string' || !UUID.test(claim_id)))
    return 'malformed: claim_id';
  if (verified != null && typeof verified !== 'boolean') return 'malformed: verified';
  return (isSmall(message) ? undefined : faultOfSize(message)) ?? (message as Payload);
}

/** Nearly every message: to write it as JSON, only to see how long that is, costs more than all other checks together. */
function isSmall(message: object): boolean {
  let chars = 0;
  for (const [name, value] of Object.entries(message)) {
    if (typeof value === 'object' && value !== null) return false;
    chars += name.length + (typeof value === 'string' ? value.length : LONGEST_NUMBER_CHARS);
  }
  return chars < MAX_PAYLOAD_CHARS / JSON_CHARS_PER_CHAR;
}

function faultOfSize(message: object): string | undefined {
  const size = sizeOf(message);
  if (size === undefined) return 'malformed: nested too deeply';
  if (size > MAX_PAYLOAD_CHARS && sizeOfOriginal(message as Record<string, unknown>) > MAX_PAYLOAD_CHARS)
    return 'malformed: too large';
  return undefined;
}

/** Undefined where the message cannot be written as JSON again: it can be read at depths that overflow the writer's stack. */
function sizeOf(message: object): number | undefined {
  try {
    return JSON.stringify(message).length;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Without what the queue has added: a message must not become too large by waiting. */
function sizeOfOriginal({
  seen,
  tried,
  untried,
  last_error,
  replayed_from,
  ...original
}: Record<string, unknown>): number {
  return JSON.stringify(original).length;
}

/** Characters as the database counts them: one outside the basic plane is one, not two. */
function isId(value: unknown): value is string {
  if (typeof value !== 'string' || value === '' || value.length > 2 * MAX_ID_CHARS) return false;
  return value.length <= MAX_ID_CHARS || [...value].length <= MAX_ID_CHARS;
}

/** The identity of what is carried: the claim, or the slot for a message that was put on the queue by hand. */
export function identityOf(payload: Payload): string {
  return payload.claim_id ?? payload.resource_id;
}

/**
 * What hooks know a claim by: its slot, as long as no claim had it before; later claims of the slot, and claims that the intake
 * does not know, are named too.
 */
export function hookKeyOf({ resource_id, claim_id }: Payload, isFirst: boolean): string {
  return claim_id === undefined || claim_id === null || isFirst ? resource_id : `${resource_id}:${claim_id}`;
}
