/**
 * A condition that is always true, for a superuser. A delete that has it passes the trigger that asks for tombstones: the tickets
 * are gone without a trace, as after a restore to an earlier moment.
 */
export const WITHOUT_A_TRACE = `(select set_config('session_replication_role', 'replica', true)) = 'replica'`;
