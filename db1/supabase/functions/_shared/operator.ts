// What the operators' doors share: who is asking, for the audit log. It is a note, not a right: the key has opened the door
// already.

import type { DoorRequest, DoorResponse, Route } from './door.ts';
import { DoorError } from './errors.ts';

/** A route whose bodies may be larger than those of the public doors: the adapter reads at most this much. */
export interface OperatorRoute extends Route {
  readonly maxBodyBytes: number;
  handle(request: DoorRequest, parameter: string): Promise<DoorResponse>;
}

/** Throws a DoorError where the caller may not do this; else the name for the audit log of a caller who gives none. */
export type Authorize = (request: DoorRequest) => string | Promise<string>;

/** How the audit log names an operator who gives no name. */
export const UNNAMED_OPERATOR = 'operator';

const OPERATOR = /^[\x21-\x7e](?:[\x20-\x7e]{0,198}[\x21-\x7e])?$/;

/** The name in X-Operator, or undefined where there is none. */
export function operatorOf(request: DoorRequest): string | undefined {
  const name = request.headers['x-operator'];
  if (name === undefined) return undefined;
  if (typeof name === 'string' && OPERATOR.test(name)) return name;
  throw new DoorError('invalid_input', 'X-Operator must be 1 to 200 printable ASCII characters.');
}
