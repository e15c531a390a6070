-- tickets_page shows every ticket to a role that may call it, also under the row policy.
begin;
select plan(5);

delete from public.confirmed_tickets;
select count(*) from public.finalize_batch((
  select jsonb_agg(jsonb_build_object(
    'resource_id', '00000000-0000-4000-8000-00000000000' || n, 'pool_id', 'p', 'user_id', 'user ' || n
  )) from generate_series(1, 3) n
));
create function pg_temp.users(p_after uuid, p_limit int, p_resource_ids uuid[] default null) returns text language sql
as $$ select string_agg(t.user_id, ', ') from public.tickets_page(p_after, p_limit, p_resource_ids) t $$;

select is(pg_temp.users(null, 2), 'user 1, user 2', 'a page of tickets in the order of their slots');
select is(pg_temp.users('00000000-0000-4000-8000-000000000002', 2), 'user 3', 'and the next one');
select is(
  pg_temp.users(null, 9, array['00000000-0000-4000-8000-000000000003']::uuid[]), 'user 3', 'or those of some slots'
);

create role under_policy in role authenticated;
grant execute on function public.tickets_page(uuid, int, uuid[]) to under_policy;
create function pg_temp.under_policy(p_sql text) returns int language plpgsql
as $$
declare
  v_count int;
begin
  perform set_config('role', 'under_policy', true);
  execute p_sql into v_count;
  perform set_config('role', 'none', true);
  return v_count;
end
$$;
select is(pg_temp.under_policy('select count(*) from public.confirmed_tickets'), 0, 'the policy hides tickets of others');
select is(pg_temp.under_policy('select count(*) from public.tickets_page()'), 3, 'a comparison sees them all the same');

select * from finish();
rollback;
