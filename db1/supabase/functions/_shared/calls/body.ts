// The body of a call event, read after its bytes have been proven: strict JSON, known fields, a real moment.

import { HttpError } from '../errors.ts';
import { JsonError, type JsonValue, parseJson } from '../json.ts';
import { check, type Schema, SchemaError } from '../schema.ts';

export interface CallBody {
  readonly eventId: string | null;
  readonly kind: string;
  readonly occurredAt: string;
  /** As JSON text. */
  readonly payload: string;
}

/** What has a fixed shape; the payload beside it is any object. */
export const CALL_BODY = {
  type: 'object',
  properties: {
    event_id: {
      type: 'string',
      minLength: 1,
      maxLength: 200,
      description: "The sender's own id of the event.",
    },
    kind: { type: 'string', minLength: 1, maxLength: 100, description: 'What happened.' },
    occurred_at: {
      type: 'string',
      pattern:
        '^(19|2\\d)\\d\\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])T([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?' +
        '(Z|[+-](0\\d|1[0-4]):[0-5]\\d)$',
      description: 'When, in ISO 8601 with an offset.',
    },
  },
  required: ['kind', 'occurred_at'],
  additionalProperties: false,
} as const satisfies Schema;

const FIELDS = [...Object.keys(CALL_BODY.properties), 'payload'];

export function readCallBody(bytes: Uint8Array): CallBody {
  try {
    return toCallBody(parseJson(bytes));
  } catch (error) {
    if (error instanceof JsonError)
      throw new HttpError('invalid_json', `The body was refused: ${error.message}.`);
    if (error instanceof SchemaError) throw new HttpError('invalid_input', error.message);
    throw error;
  }
}

function toCallBody(value: JsonValue): CallBody {
  if (!isObject(value)) throw new SchemaError('the body must be of type object.');
  const { payload, ...rest } = value;
  if (Object.keys(rest).some((name) => !Object.hasOwn(CALL_BODY.properties, name)))
    throw new SchemaError(`the body has an unknown field; known are ${FIELDS.join(', ')}.`);
  const { event_id, kind, occurred_at } = check(CALL_BODY, rest);
  if (payload === undefined) throw new SchemaError('payload is missing.');
  if (!isObject(payload)) throw new SchemaError('payload must be of type object.');
  if (!isRealDay(occurred_at)) throw new SchemaError('occurred_at names a day that does not exist.');
  // The strict parser took only what survives this unchanged.
  return { eventId: event_id ?? null, kind, occurredAt: occurred_at, payload: JSON.stringify(payload) };
}

function isObject(value: JsonValue | undefined): value is { [key: string]: JsonValue } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** JavaScript would move the 30th of February to March; Postgres refuses it, and with it the whole batch. */
function isRealDay(moment: string): boolean {
  const [year, month, day] = moment.slice(0, 10).split('-').map(Number) as [number, number, number];
  return new Date(Date.UTC(year, month - 1, day)).getUTCDate() === day;
}
