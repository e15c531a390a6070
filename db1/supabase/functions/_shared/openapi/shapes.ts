// What descriptions of answers are made of.

import type { AnswerSchema } from './document.ts';

export const TEXT = { type: 'string' } as const;
export const TEXT_OR_NULL = { type: ['string', 'null'] } as const;
export const COUNT = { type: 'integer' } as const;
export const COUNT_OR_NULL = { type: ['integer', 'null'] } as const;
export const FLAG = { type: 'boolean' } as const;

/** An object that has all of these fields, and may get more. */
export function shape(properties: { [name: string]: AnswerSchema }, optional: string[] = []): AnswerSchema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: 'object', properties, required };
}
