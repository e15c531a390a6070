// Who an operator says to be. It is a note for the audit log, not a right: the key has opened the door already.

import type { DoorRequest } from './door.ts';
import { DoorError } from './errors.ts';

const OPERATOR = /^[\x21-\x7e](?:[\x20-\x7e]{0,198}[\x21-\x7e])?$/;

/** The name in X-Operator, or undefined where there is none. */
export function operatorOf(request: DoorRequest): string | undefined {
  const name = request.headers['x-operator'];
  if (name === undefined) return undefined;
  if (typeof name === 'string' && OPERATOR.test(name)) return name;
  throw new DoorError('invalid_input', 'X-Operator must be 1 to 200 printable ASCII characters.');
}
