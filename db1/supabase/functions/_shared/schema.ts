// A small part of JSON Schema 2020-12, enough for our bodies. The schemas are plain JSON Schema objects, so the published
// description of the API can be made from the very objects that check it.

import type { JsonValue } from './json.ts';

type OrNull<Name extends string> = Name | readonly [Name, 'null'];

interface Described {
  readonly description?: string;
}
export interface StringSchema extends Described {
  readonly type: OrNull<'string'>;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
}
export interface IntegerSchema extends Described {
  readonly type: OrNull<'integer'>;
  readonly minimum?: number;
  readonly maximum?: number;
}
export interface BooleanSchema extends Described {
  readonly type: OrNull<'boolean'>;
}
export interface ArraySchema extends Described {
  readonly type: OrNull<'array'>;
  readonly items: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
}
export interface ObjectSchema extends Described {
  readonly type: OrNull<'object'>;
  readonly properties: { readonly [name: string]: Schema };
  readonly required?: readonly string[];
  readonly additionalProperties: false;
}
export type Schema = StringSchema | IntegerSchema | BooleanSchema | ArraySchema | ObjectSchema;

type Null<S extends Schema> = S['type'] extends readonly unknown[] ? null : never;
type RequiredName<S extends ObjectSchema> = S['required'] extends readonly (infer Name)[] ? Name : never;
type Properties<S extends ObjectSchema> = {
  [Name in keyof S['properties'] as Name extends RequiredName<S> ? Name : never]: FromSchema<
    S['properties'][Name]
  >;
} & {
  [Name in keyof S['properties'] as Name extends RequiredName<S> ? never : Name]?: FromSchema<
    S['properties'][Name]
  >;
};
/** The TypeScript type of what a schema lets through. Declare the schema `as const satisfies Schema`. */
export type FromSchema<S extends Schema> =
  | Null<S>
  | (S extends ObjectSchema
      ? Properties<S>
      : S extends ArraySchema
        ? FromSchema<S['items']>[]
        : S extends StringSchema
          ? string
          : S extends IntegerSchema
            ? number
            : boolean);

export class SchemaError extends Error {
  override readonly name = 'SchemaError';
}

/** Returns the value, typed; throws a SchemaError that names the place and the rule of the first thing that is wrong. */
export function check<S extends Schema>(schema: S, value: JsonValue, name = 'the body'): FromSchema<S> {
  const problem = find(schema, value, name);
  if (problem !== undefined) throw new SchemaError(problem);
  return value as FromSchema<S>;
}

function find(schema: Schema, value: JsonValue, name: string): string | undefined {
  if (typeof schema.type !== 'string' && value === null) return undefined;
  const type = typeof schema.type === 'string' ? schema.type : schema.type[0];
  if (!hasType(type, value)) return `${name} must be of type ${[schema.type].flat().join(' or ')}.`;
  if ('properties' in schema) return findInObject(schema, value as { [key: string]: JsonValue }, name);
  if ('items' in schema) return findInArray(schema, value as JsonValue[], name);
  if (typeof value === 'string') return findInString(schema as StringSchema, value, name);
  if (typeof value === 'number') return findInInteger(schema as IntegerSchema, value, name);
  return undefined;
}

function hasType(type: string, value: JsonValue): boolean {
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value);
  return typeof value === type;
}

function findInObject(
  schema: ObjectSchema,
  value: { [key: string]: JsonValue },
  name: string,
): string | undefined {
  if (schema.required !== undefined) {
    for (const key of schema.required) if (!Object.hasOwn(value, key)) return `${key} is missing.`;
  }
  for (const key of Object.keys(value)) {
    const property = Object.hasOwn(schema.properties, key) ? schema.properties[key] : undefined;
    // The unknown name is not repeated: it comes from outside and may be long.
    if (property === undefined)
      return `${name} has an unknown field; known are ${Object.keys(schema.properties).join(', ')}.`;
    const problem = find(property, value[key] as JsonValue, key);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function findInArray(schema: ArraySchema, value: JsonValue[], name: string): string | undefined {
  if (value.length < (schema.minItems ?? 0)) return `${name} must have at least ${schema.minItems} items.`;
  if (value.length > (schema.maxItems ?? Infinity))
    return `${name} must have at most ${schema.maxItems} items.`;
  for (const [index, item] of value.entries()) {
    const problem = find(schema.items, item, `${name}[${index}]`);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function findInString(schema: StringSchema, value: string, name: string): string | undefined {
  const { minLength = 0, maxLength = Infinity, pattern } = schema;
  // JSON Schema counts characters, not UTF-16 units; the exact count is only needed where the units do not settle it.
  const units = value.length;
  const length = units > maxLength || units < minLength * 2 ? Array.from(value).length : units;
  if (length < minLength) return `${name} must have at least ${minLength} characters.`;
  if (length > maxLength) return `${name} must have at most ${maxLength} characters.`;
  if (pattern !== undefined && !compiled(pattern).test(value)) return `${name} must match ${pattern}.`;
  return undefined;
}

function findInInteger(schema: IntegerSchema, value: number, name: string): string | undefined {
  // What the number means is what explains its bounds.
  const meaning = schema.description === undefined ? '' : ` ${schema.description}`;
  if (value < (schema.minimum ?? -Infinity)) return `${name} must be at least ${schema.minimum}.${meaning}`;
  if (value > (schema.maximum ?? Infinity)) return `${name} must be at most ${schema.maximum}.${meaning}`;
  return undefined;
}

// Patterns come from our own schemas only, so this map has as many entries as the code has patterns.
const patterns = new Map<string, RegExp>();
function compiled(pattern: string): RegExp {
  let expression = patterns.get(pattern);
  if (expression === undefined) {
    expression = new RegExp(pattern, 'u');
    patterns.set(pattern, expression);
  }
  return expression;
}
