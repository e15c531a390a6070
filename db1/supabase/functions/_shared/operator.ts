// What the operators' doors share: who is asking, for the audit log, and filters out of a query.

import type { DoorRequest, DoorResponse, Route } from './door.ts';
import { DoorError } from './errors.ts';
import type { JsonValue } from './json.ts';
import { check, type FromSchema, type Schema, SchemaError } from './schema.ts';

/** A request whose adapter also hands on the raw query, without its question mark. */
export interface OperatorRequest extends DoorRequest {
  readonly query?: string;
}

/** A route whose bodies may be larger than those of the public doors: the adapter reads at most this much. */
export interface OperatorRoute extends Route {
  readonly maxBodyBytes: number;
  handle(request: OperatorRequest, parameter: string): Promise<DoorResponse>;
}

/** Throws a DoorError where the caller may not do this; else the name for the audit log of a caller who gives none. */
export type Authorize = (request: DoorRequest) => string | Promise<string>;

const OPERATOR = /^[\x21-\x7e](?:[\x20-\x7e]{0,198}[\x21-\x7e])?$/;

/** Who the caller says to be. It is a note for the audit log, not a right: the key has opened the door already. */
export function actorOf(request: DoorRequest): string | undefined {
  const name = request.headers['x-operator'];
  if (name === undefined) return undefined;
  if (typeof name === 'string' && OPERATOR.test(name)) return name;
  throw new DoorError('invalid_input', 'X-Operator must be 1 to 200 printable ASCII characters.');
}

/** A query as the schema's type: digits are numbers where the schema wants one. */
export function readQuery<S extends Schema>(
  query: string,
  schema: S,
  numbers: ReadonlySet<string>,
): FromSchema<S> {
  // Without a prototype, so that __proto__ is one more unknown name.
  const values: Record<string, JsonValue> = Object.create(null);
  for (const [name, value] of new URLSearchParams(query)) {
    if (Object.hasOwn(values, name)) throw new DoorError('invalid_input', 'A filter is given twice.');
    // Postgres has no NUL in text.
    if (value.includes('\0')) throw new DoorError('invalid_input', 'A filter holds a NUL character.');
    // A filter left empty, as in "?provider=&limit=10", does not filter.
    if (value !== '') values[name] = numbers.has(name) && /^[0-9]{1,16}$/.test(value) ? Number(value) : value;
  }
  return checked(schema, values, 'the query');
}

export function checked<S extends Schema>(schema: S, value: JsonValue, name: string): FromSchema<S> {
  try {
    return check(schema, value, name);
  } catch (error) {
    if (error instanceof SchemaError) throw new DoorError('invalid_input', error.message);
    throw error;
  }
}
