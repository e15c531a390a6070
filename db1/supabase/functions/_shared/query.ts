// A query, read as strictly as a body.

import { HttpError } from './errors.ts';
import type { JsonValue } from './json.ts';
import { check, type FromSchema, type ObjectSchema, type Schema, SchemaError } from './schema.ts';

/** Refuses what the schema does not let through (422). Integers are spelled in digits; a filter left empty is none. */
export function readQuery<S extends ObjectSchema>(query: string | undefined, schema: S): FromSchema<S> {
  // Without a prototype, so that __proto__ is one more unknown name.
  const values: Record<string, string | number> = Object.create(null);
  for (const [name, value] of new URLSearchParams(query ?? '')) {
    if (Object.hasOwn(values, name)) throw new HttpError('invalid_input', 'A filter is given twice.');
    // Postgres has no NUL in text.
    if (value.includes('\0')) throw new HttpError('invalid_input', 'A filter holds a NUL character.');
    const isNumber = Object.hasOwn(schema.properties, name) && schema.properties[name]?.type === 'integer';
    if (value !== '') values[name] = isNumber ? digits(value) : value;
  }
  return checked(schema, values, 'the query');
}

/** Digits as the number they spell; anything else stays text, which the schema refuses. */
export function digits(text: string): number | string {
  return /^[0-9]{1,16}$/.test(text) ? Number(text) : text;
}

/** As `check`, with a refusal that a door can answer. */
export function checked<S extends Schema>(schema: S, value: JsonValue, name: string): FromSchema<S> {
  try {
    return check(schema, value, name);
  } catch (error) {
    if (error instanceof SchemaError) throw new HttpError('invalid_input', error.message);
    throw error;
  }
}
