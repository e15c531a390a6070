import { blameOf, isSaidByDatabase, toHttpError } from '#core/failure.ts';
import { StackError } from '../failure.ts';

/** For commands that ask DB2 directly: what a person can mend becomes two lines; everything else stays what it is. */
export function explained(error: unknown): unknown {
  if (error instanceof StackError) return error;
  const { kind, message, hint } = toHttpError(error);
  if (kind.code === 'internal') return error;
  if (kind.code === 'database_unavailable') {
    // A database that answers says best why it serves nobody: a wrong password, no such database.
    const said = isSaidByDatabase(error) && error instanceof Error ? `DB2 says: ${error.message}` : message;
    return new StackError(said, 'is it running, and is DB2_URL its address?', error);
  }
  // Our own functions say what was wrong in their own words.
  const isOurs = blameOf(error) === 'refused' && error instanceof Error;
  return new StackError(isOurs ? error.message : message, hint, error);
}
