-- How far vacuum is behind. Sessions that hold a snapshot are in test/observe/vacuum.test.ts: they need a second connection.
begin;
select plan(6);

create temp table seen as select public.vacuum_levels() as levels;

select is(
  (select string_agg(t ->> 'name', ', ') from seen, jsonb_array_elements(levels -> 'tables') t),
  'pgmq.q_event_inbox, pgmq.q_intake_queue, public.claims, public.inventory_slots', 'the tables that change all the time are looked at'
);
select ok(
  (select bool_and((t ->> 'live_rows')::bigint >= 0 and (t ->> 'dead_rows')::bigint >= 0)
   from seen, jsonb_array_elements(levels -> 'tables') t),
  'each has a number of live and of dead rows'
);
select ok(
  (select bool_and(t ? 'vacuum_age_sec') from seen, jsonb_array_elements(levels -> 'tables') t),
  'and says when it was vacuumed, or that it was not'
);
select is(
  (select p.proowner::regrole::text from pg_proc p where p.oid = 'public.vacuum_levels()'::regprocedure),
  (select levels ->> 'role' from seen), 'it looks as its owner'
);
select ok(
  (select (levels #>> '{snapshot,pid}')::int is distinct from pg_backend_pid() from seen),
  'the session that asks does not count as a holder'
);
select is(tests.as_caller('service_role', null, 'select public.vacuum_levels() ->> ''role'''),
  (select levels ->> 'role' from seen), 'service_role sees what the owner sees');

select * from finish();
rollback;
