-- DB2's copy of the operators: the later reading stays, in whatever order two servers write, and no reading outlasts the next.
begin;
select plan(9);
set constraints all immediate;

create function pg_temp.row_of(p_name text, p_is_revoked boolean) returns jsonb
language sql as $$
  select jsonb_build_array(jsonb_build_object(
    'name', p_name, 'role', 'viewer', 'key_hash', encode(sha256('k'), 'hex'), 'is_revoked', p_is_revoked
  ));
$$;

select public.copy_operators(pg_temp.row_of('ann', false), now() - interval '30 seconds');
select results_eq(
  $$ select name, role, key_hash, is_revoked from public.known_operators() $$,
  $$ values ('ann', 'viewer', sha256('k'), false) $$, 'the copy has what DB1 has'
);
select public.copy_operators(pg_temp.row_of('ann', true), now() - interval '10 seconds');
select public.copy_operators(pg_temp.row_of('ann', false), now() - interval '20 seconds');
select is((select is_revoked from public.known_operators()), true, 'a server that is late brings no key back');
select public.copy_operators('[]', now() - interval '20 seconds');
select is((select count(*)::int from public.known_operators()), 1, 'and takes none away');

-- As another holder of service_role could write it.
select public.copy_operators(pg_temp.row_of('ann', false) || pg_temp.row_of('eve', false), 'infinity');
select is((select count(*)::int from public.known_operators() where not is_revoked), 2, 'a reading from the future is taken');
select is((select max(read_at) from audit.operators), now(), 'as one from now');
select public.copy_operators(pg_temp.row_of('ann', true), now());
select is((select is_revoked from public.known_operators() where name = 'ann'), true, 'so the next one takes its place');
-- In the next transaction, which this test is not.
update audit.operators set read_at = now() - interval '1 second';
select public.copy_operators(pg_temp.row_of('ann', true), now());
select results_eq(
  'select name from public.known_operators()', $$ values ('ann') $$, 'and whom DB1 does not have goes'
);
select results_eq(
  $$ select a.subject, a.details ->> 'did' from audit.audit_logs a where a.action = 'rule_change' and a.subject ~ '^operator ' order by a.id $$,
  $$ values ('operator ann', 'insert'), ('operator ann', 'update'), ('operator ann', 'update'), ('operator eve', 'insert'),
    ('operator ann', 'update'), ('operator eve', 'delete') $$,
  'the log has each change of the copy, and none where nothing changes'
);
select is_empty(
  $$ select from audit.audit_logs a where a::text like '%' || encode(sha256('k'), 'hex') || '%' $$, 'and no hash of a key'
);

select * from finish();
rollback;
