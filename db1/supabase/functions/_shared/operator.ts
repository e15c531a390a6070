// What the operators' doors share: who is asking, proved by a key, and why, for the audit log.

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

/** Throws a HttpError where the caller may not do this; else how the audit log names the caller. */
export type Authorize = (request: HttpRequest) => string | Promise<string>;

/** How the audit log names the holder of SLUICE_ADMIN_KEY, which belongs to no one person. */
export const FIRST_OPERATOR = 'admin';
/** How it names one of our own services. */
export const SERVICE = 'service_role';

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

/** The name of the operator whose key let this request in. */
export function operatorOf({ operator, path }: HttpRequest): string {
  if (operator === undefined) throw new Error(`${path} is served without a guard`);
  return operator.name;
}
