import { toDoorError } from '#core/errors.ts';
import { StackError } from '../stack/failure.ts';

/** For commands that ask DB2 directly: what a person can mend becomes two lines; everything else stays what it is. */
export function explained(error: unknown): unknown {
  if (error instanceof StackError) return error;
  const { kind, message, hint } = toDoorError(error);
  if (kind.code === 'internal') return error;
  if (kind.code === 'database_unavailable')
    return new StackError(message, 'is it running, and is DB2_URL its address?', error);
  // Our own functions say what was wrong in their own words.
  const isOurs = kind.sqlstate !== undefined && error instanceof Error && 'code' in error;
  return new StackError(isOurs ? error.message : message, hint, error);
}
