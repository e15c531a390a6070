// Notes every step that rows of a machine's table take, and which function took it. Only tests have it.

import type pg from 'pg';
import type { Machine, Step } from '../../tools/machines/machine.ts';

type Ask = <Row extends pg.QueryResultRow>(sql: string) => Promise<Row[]>;

/** For a database of a test. The outermost function is the last in the context: the others were called by it. */
export const RECORDER = `
  create schema machine;
  create table machine.steps (
    from_state text, to_state text not null, taken_by text not null, unique nulls not distinct (from_state, to_state, taken_by)
  );
  create function machine.note() returns trigger language plpgsql security definer as $$
  declare
    v_context text;
    v_by text;
  begin
    get diagnostics v_context = pg_context;
    select m[1] into v_by
    from regexp_matches(v_context, 'function "?(?:\\w+\\.)?(\\w+)["(]', 'g') with ordinality as f (m, place)
    where m[1] <> 'note' order by place desc limit 1;
    insert into machine.steps
    values (case tg_op when 'UPDATE' then to_jsonb(old) ->> tg_argv[0] end, to_jsonb(new) ->> tg_argv[0], coalesce(v_by, ''))
    on conflict do nothing;
    return null;
  end
  $$;`;

/** Starts the notes of this machine. */
export function recording({ table, column, alsoWhen }: Machine): string {
  const changes = `old.${column} is distinct from new.${column}`;
  return `
    create trigger note_new after insert on ${table} for each row execute function machine.note('${column}');
    create trigger note_step after update on ${table} for each row
      when (${alsoWhen === undefined ? changes : `${changes} or ${alsoWhen}`}) execute function machine.note('${column}');`;
}

export function takenSteps(ask: Ask): Promise<Step[]> {
  return ask<Step>('select from_state as "from", to_state as "to", taken_by as "by" from machine.steps');
}
