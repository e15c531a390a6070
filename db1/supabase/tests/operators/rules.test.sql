-- A rule that is changed past the product leaves a row; one that a function changes has that function's.
begin;
select plan(3);
set constraints all immediate;

insert into public.engine_config (pool_id, max_per_user) values ('noted', 2);
update public.engine_config set max_per_user = 3 where pool_id = 'noted';
update public.engine_config set max_per_user = 3 where pool_id = 'noted';
select results_eq(
  $$ select details ->> 'did', details -> 'before', details -> 'after' -> 'max_per_user' from audit.audit_logs
     where subject = 'pool noted' order by id $$,
  $$ values ('insert', '{}'::jsonb, '2'::jsonb), ('update', '{"max_per_user": 2}', '3') $$,
  'what was before and after; what changes nothing leaves nothing'
);
select is(
  (select distinct actor from audit.audit_logs where subject = 'pool noted'), session_user::text, 'and who was connected'
);
select throws_ok(
  $$ update public.engine_config set commit_rpc_name = '../x' where pool_id = 'noted' $$, '23514', null,
  'a function is named by an identifier'
);

select * from finish();
rollback;
