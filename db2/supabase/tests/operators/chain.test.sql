-- The log is insert only, and sealed rows are what they were.
begin;
select plan(9);

select throws_ok($$ update audit.audit_logs set actor = 'eve' $$, '23001', null, 'no row is changed');
select throws_ok($$ delete from audit.audit_logs $$, '23001', null, 'or removed');
select throws_ok($$ truncate audit.audit_logs $$, '23001', null, 'nor all of them');

select public.seal_audit(100000);
insert into audit.audit_logs (actor, action, subject, details) values
  ('ann', 'test', 'one', '{"user_id": "bob"}'), ('ann', 'test', 'two', '{}'), ('ann', 'test', 'three', '{}');
select is(public.seal_audit(), 3, 'three rows more are sealed');
select is(public.seal_audit(), 0, 'each once');
select is(
  (select (s.unsealed, s.head = audit.head_after(s.seals)) from audit.chain_state() s), row(0::bigint, true),
  'the head is that of the last seal'
);
select is_empty(
  $$ select f.* from audit.chain_state() s, audit.chain_faults(s.begins_after, s.sealed_to) f $$, 'nothing is wrong with them'
);
select is(
  (select details ->> 'user_id' from audit.audit_logs where subject = 'one'), audit.pseudonym('bob'), 'users have pseudonyms'
);

set local session_replication_role = replica;
update audit.audit_logs set actor = 'eve' where subject = 'two';
set local session_replication_role = origin;
select results_eq(
  $$ select a.subject, f.fault from audit.chain_state() s, audit.chain_faults(s.begins_after, s.sealed_to) f
     join audit.audit_logs a on a.id = f.log_id $$,
  $$ values ('two', 'changed') $$, 'a row that was changed past the trigger is named'
);

select * from finish();
rollback;
