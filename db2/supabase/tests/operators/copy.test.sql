-- DB2's copy of the operators: the newer row stays, in whatever order two servers write.
begin;
select plan(3);

create function pg_temp.row_of(p_version int, p_is_revoked boolean) returns jsonb
language sql as $$
  select jsonb_build_array(jsonb_build_object(
    'name', 'ann', 'role', 'viewer', 'key_hash', encode(sha256('k'), 'hex'), 'is_revoked', p_is_revoked, 'version', p_version
  ));
$$;

select public.copy_operators(pg_temp.row_of(1, false));
select results_eq(
  $$ select name, role, key_hash, is_revoked from public.known_operators() $$,
  $$ values ('ann', 'viewer', sha256('k'), false) $$, 'the copy has what DB1 has'
);
select public.copy_operators(pg_temp.row_of(2, true));
select public.copy_operators(pg_temp.row_of(1, false));
select is((select is_revoked from public.known_operators()), true, 'a server that is late brings no key back');
select public.copy_operators('[]');
select is((select count(*)::int from public.known_operators()), 1, 'and forgets none');

select * from finish();
rollback;
