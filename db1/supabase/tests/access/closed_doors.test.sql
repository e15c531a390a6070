-- What anon and authenticated meet when they try anyway.
begin;
select plan(168);

-- All that a claim can change, as one value.
create function pg_temp.state()
returns text
language sql
as $$
  select md5(concat(
    (select string_agg(c::text, ',' order by c.claim_id) from public.claims c),
    (select string_agg(s::text, ',' order by s.id) from public.inventory_slots s),
    (select string_agg(q::text, ',' order by q.msg_id) from pgmq.q_intake_queue q),
    (select string_agg(d::text, ',' order by d.msg_id) from pgmq.q_intake_dlq d)
  ));
$$;

create function pg_temp.refuses(p_sql text, p_code text, p_name text)
returns setof text
language plpgsql
as $$
declare
  v_before text := pg_temp.state();
begin
  return next throws_ok(p_sql, p_code, null::text, p_name);
  return next is(pg_temp.state(), v_before, p_name || ', and nothing changes');
end
$$;

-- Runs a query as the API does for a caller with this role and this user id in its token.
create function pg_temp.as_caller(p_role text, p_sub text, p_sql text)
returns text
language plpgsql
as $$
declare
  v_answer text;
begin
  perform set_config('request.jwt.claims', jsonb_build_object('role', p_role, 'sub', p_sub)::text, true);
  perform set_config('role', p_role, true);
  execute p_sql into v_answer;
  perform set_config('role', 'none', true);
  return v_answer;
end
$$;

insert into public.inventory_slots (pool_id) values ('doors');

select pg_temp.refuses(
  format($$ select pg_temp.as_caller(%L, 'ann', %L) $$, r.role, t.statement), '42501',
  format('%s may not: %s', r.role, t.statement)
)
from unnest(array['anon', 'authenticated']) r (role)
cross join (values
  ('select claim_id from public.claims'),
  ('select id from public.inventory_slots'),
  ('select pool_id from public.engine_config'),
  ('select id from public.engine_metrics'),
  ('select slot_id from public.slot_manifest'),
  ('insert into public.inventory_slots (pool_id) values (''doors'') returning id'),
  ('update public.inventory_slots set status = ''CONSUMED'' returning id'),
  ('delete from public.inventory_slots returning id'),
  ('select low_order from intake.pool_marks'),
  ('select intake.rebuild_inventory(''doors'')'),
  ('select msg_id from pgmq.q_intake_queue'),
  ('select pgmq.send(''intake_queue'', ''{}'')'),
  ('select jobid from cron.job'),
  ('select cron.schedule(''* * * * *'', ''select 1'')'),
  ('select outcome from public.claim_batch(array[''doors''], array[''ann''], array[''r''])'),
  ('select public.intake_queue_send(''{}'')'),
  ('select public.reap_orphaned_slots()'),
  ('select public.expire_holds()'),
  ('select id from audit.audit_logs'),
  ('select host from intake.hook_allowed_hosts'),
  ('select msg_id from public.bridge_take(1, 30)'),
  ('select public.bridge_extend(''{1}'', ''{1}'', 30)'),
  ('select outcome from public.bridge_finish(''{1}'', ''{1}'', ''{gone}'', ''{null}'', ''{0}'')'),
  ('select public.bridge_allow(''doors'', 1)'),
  ('select pool_id from public.bridge_config(''{doors}'')'),
  ('select msg_id from public.list_dead_letters()'),
  ('select outcome from public.replay_dead_letters(''{1}'', ''eve'')'),
  ('select outcome from public.discard_dead_letters(''{1}'', ''eve'')'),
  ('select public.allow_hook_host(''127.0.0.1'', ''eve'')'),
  ('select public.disallow_hook_host(''127.0.0.1'', ''eve'')'),
  ('select public.hook_allowed_hosts()'),
  ('select public.live_sample()'),
  ('select pool_id from public.pool_list()'),
  ('select pool_id from public.pool_create(''mine'', 1, ''{}'', ''eve'')'),
  ('select pool_id from public.pool_change(''doors'', ''{}'', 1, ''eve'')'),
  ('select claim_id from public.claim_search()'),
  ('select what from public.claim_timeline(gen_random_uuid())'),
  ('select claim_id from public.release_claim_as_operator(gen_random_uuid(), ''eve'')'),
  ('select id from public.audit_page()'),
  ('select public.intake_health()'),
  ('select public.session_end(''x'', now())'),
  ('select session_id from public.sessions_ended()')
) t (statement);

select * from finish();
rollback;
