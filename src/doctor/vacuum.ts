// Whether vacuum keeps up, and what holds it back.

import type { CallFunction } from '#core/call_function.ts';
import type { SideName } from '../migrate/sides.ts';
import {
  type OldestSnapshot,
  readVacuumLevels,
  type VacuumedTable,
  type VacuumLevels,
} from '../server/vacuum_levels.ts';
import { type Finding, ok, skip, warn } from './finding.ts';
import { TITLES } from './judge.ts';

/** As the alert SluiceOldSnapshot: longer than any transaction of ours. */
const SNAPSHOT_WARN_SEC = 600;
const SNAPSHOT_WARN_XACTS = 1_000_000;
/** As the alert SluiceDeadRows: with Postgres' own settings autovacuum starts at a fifth of the rows. Ours start earlier. */
const DEAD_ROWS_SHARE = 0.2;
const DEAD_ROWS_SLACK = 100_000;
/** Autovacuum comes round every minute: what a burst left behind since is not late yet. */
const VACUUM_LATE_SEC = 300;
const GUIDE = 'docs/operate.md#dead-rows';

export async function examineVacuum(side: SideName, call: CallFunction): Promise<Finding[]> {
  const levels = await readVacuumLevels(call);
  return levels === undefined ? [] : judgeVacuum(side, levels);
}

export function judgeVacuum(side: SideName, { role, tables, snapshot }: VacuumLevels): Finding[] {
  const title = TITLES[side];
  const isHeld = snapshot !== null && (snapshot.age_sec ?? Number.POSITIVE_INFINITY) >= VACUUM_LATE_SEC;
  return [
    judgeSnapshot(`${title}: oldest snapshot`, snapshot, role),
    judgeDeadRows(`${title}: dead rows`, tables, isHeld),
  ];
}

const isOld = ({ age_sec, age_xacts }: OldestSnapshot): boolean =>
  age_sec === null ? age_xacts >= SNAPSHOT_WARN_XACTS : age_sec >= SNAPSHOT_WARN_SEC;

function judgeSnapshot(check: string, snapshot: OldestSnapshot | null, role: string): Finding {
  if (snapshot === null) return ok(check, 'none is held');
  const { age_sec, age_xacts } = snapshot;
  const holder = holderOf(snapshot);
  const since = `${counted(age_xacts)} transactions`;
  if (isOld(snapshot))
    return warn(
      check,
      `${holder} has held it for ${age_sec === null ? since : `${age_sec} s and ${since}`}: vacuum removes no row that died since`,
      cureOf(snapshot),
    );
  if (age_sec !== null) return ok(check, `${holder}, for ${age_sec} s and ${since}`);
  const why =
    snapshot.kind === 'session'
      ? `${role} may not see that session: grant it pg_read_all_stats`
      : 'Postgres does not keep its time';
  return skip(check, `unknown: ${holder} has held it for ${since}, and ${why}`);
}

function holderOf({ kind, pid, name, state }: OldestSnapshot): string {
  const details = [...(name ? [name] : []), ...(state === null ? [] : [state])].join(', ');
  const title = kind === 'session' ? `pid ${pid}` : `a ${kind}`;
  return details === '' ? title : `${title} (${details})`;
}

function cureOf({ kind, pid, name }: OldestSnapshot): string {
  if (kind === 'session')
    return `unless it is a backup, end it: select pg_terminate_backend(${pid}) (${GUIDE})`;
  if (kind === 'prepared transaction')
    return `commit prepared or rollback prepared '${name}', as its program would (${GUIDE})`;
  if (kind === 'replication slot')
    return `start what reads the slot, or: select pg_drop_replication_slot('${name}') (${GUIDE})`;
  return `end the long query on the standby, or switch hot_standby_feedback off there (${GUIDE})`;
}

function judgeDeadRows(check: string, tables: readonly VacuumedTable[], isHeld: boolean): Finding {
  const [worst, ...others] = tables.toSorted((a, b) => b.dead_rows - a.dead_rows);
  if (worst === undefined) return skip(check, 'no table has statistics');
  const behind = [worst, ...others].filter((table) => isBehind(table) && (isHeld || isLate(table)));
  const [first] = behind;
  if (first === undefined)
    return ok(check, `vacuum keeps up; ${worst.name} has most, ${counted(worst.dead_rows)}`);
  return warn(
    check,
    behind.map(told).join('; '),
    isHeld
      ? `a snapshot keeps vacuum from removing them: see oldest snapshot (${GUIDE})`
      : `is autovacuum on, and has it time? vacuum (verbose) ${first.name} says what it does (${GUIDE})`,
  );
}

const isBehind = ({ live_rows, dead_rows }: VacuumedTable): boolean =>
  dead_rows > DEAD_ROWS_SLACK + DEAD_ROWS_SHARE * live_rows;

const isLate = ({ vacuum_age_sec }: VacuumedTable): boolean =>
  vacuum_age_sec === null || vacuum_age_sec >= VACUUM_LATE_SEC;

function told({ name, live_rows, dead_rows, vacuum_age_sec }: VacuumedTable): string {
  const vacuumed = vacuum_age_sec === null ? 'never vacuumed' : `vacuumed ${vacuum_age_sec} s ago`;
  return `${name} has ${counted(dead_rows)} dead rows, ${counted(live_rows)} alive, ${vacuumed}`;
}

const counted = (value: number): string => value.toLocaleString('en-US');
