// What the operators' doors share: who is asking and why, for the audit log. It is a note, not a right: the key has opened
// the door already.

import { HttpError } from './errors.ts';
import type { HttpRequest, HttpResponse, Route } from './router.ts';
import type { Schema } from './schema.ts';

/** A route whose bodies may be larger than those of the public doors: the adapter reads at most this much. */
export interface OperatorRoute extends Route {
  readonly maxBodyBytes: number;
  handle(request: HttpRequest, parameter: string): Promise<HttpResponse>;
}

/** Makes the routes below `prefix`, all with the same limit on their bodies. */
export function operatorRoutes(
  prefix: string,
  maxBodyBytes: number,
  routes: readonly (readonly [method: string, path: string, handle: OperatorRoute['handle']])[],
): OperatorRoute[] {
  return routes.map(([method, path, handle]) => ({ method, path: prefix + path, maxBodyBytes, handle }));
}

/** Throws a HttpError where the caller may not do this; else the name for the audit log of a caller who gives none. */
export type Authorize = (request: HttpRequest) => string | Promise<string>;

/** How the audit log names an operator who gives no name. */
export const UNNAMED_OPERATOR = 'operator';
/** How it names one of our own services that gives none. */
export const UNNAMED_SERVICE = 'service_role';

export const REASON = {
  type: 'string',
  minLength: 1,
  maxLength: 500,
  description: 'Why, for the audit log.',
} as const satisfies Schema;

/** In either case, as Postgres takes it: some tools write capitals. */
export const UUID = {
  type: 'string',
  pattern: '^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$',
} as const satisfies Schema;

const OPERATOR = /^[\x21-\x7e](?:[\x20-\x7e]{0,198}[\x21-\x7e])?$/;

/** The name in X-Operator, or undefined where there is none. */
export function operatorOf(request: HttpRequest): string | undefined {
  const name = request.headers['x-operator'];
  if (name === undefined) return undefined;
  if (typeof name === 'string' && OPERATOR.test(name)) return name;
  throw new HttpError('invalid_input', 'X-Operator must be 1 to 200 printable ASCII characters.');
}
