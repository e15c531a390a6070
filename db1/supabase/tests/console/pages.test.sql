-- A page costs what it holds, however far down it begins: on every Postgres since 15, where a function in SQL is planned
-- without its arguments.
begin;
select plan(2);

create function pg_temp.is_cheap(p_call text)
returns boolean
language plpgsql
as $$
declare
  c_blocks_max constant int := 100;
  v_plan json;
begin
  -- Twice: the first call has to look things up in the catalog.
  for i in 1..2 loop
    execute 'explain (analyze, buffers, format json) select * from ' || p_call into v_plan;
  end loop;
  return (v_plan #>> '{0,Plan,Shared Hit Blocks}')::int + (v_plan #>> '{0,Plan,Shared Read Blocks}')::int < c_blocks_max;
end
$$;

insert into audit.audit_logs (actor, action, subject) select 'ann', 'act', 'it' from generate_series(1, 20000);
analyze audit.audit_logs;

select ok(pg_temp.is_cheap('public.audit_page(null, 5)'), 'the newest of the audit log');
select ok(
  pg_temp.is_cheap('public.audit_page((select min(id) + 10 from audit.audit_logs), 5)'), 'the oldest of it'
);
select * from finish();
rollback;
