-- A page costs what it holds, however far down it begins: on every Postgres since 15, where a function in SQL is planned
-- without its arguments.
begin;
select plan(2);

insert into audit.audit_logs (actor, action, subject) select 'ann', 'act', 'it' from generate_series(1, 20000);
analyze audit.audit_logs;

select ok(tests.is_cheap('public.audit_page(null, 5)'), 'the newest of the audit log');
select ok(
  tests.is_cheap('public.audit_page((select min(id) + 10 from audit.audit_logs), 5)'), 'the oldest of it'
);
select * from finish();
rollback;
