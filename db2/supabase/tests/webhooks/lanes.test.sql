-- Each event is in the lane of its handler, however it was inserted and whatever becomes of the handler.
begin;
select plan(17);

create function pg_temp.event(p_id text, p_type text)
returns void
language sql
as $$
  insert into public.webhook_events (webhook_id, provider, event_id, event_type, payload)
  values ('00000000-0000-4000-8000-000000000001', 'shop', p_id, p_type, '{}');
$$;

-- The handlers by whose lanes these events would be taken.
create function pg_temp.lanes(p_like text default '%')
returns text
language sql
as $$
  select string_agg(coalesce(l.handler_name, '-'), ' ' order by e.event_id)
  from public.webhook_events e
  left join webhook.event_lanes() l on l.lane = e.lane
  where e.event_id like p_like;
$$;

create function pg_temp.id(p_event_id text)
returns uuid
language sql
as $$
  select id from public.webhook_events where event_id = p_event_id;
$$;

select is_empty('select * from webhook.event_lanes()', 'without events there are no lanes');
insert into public.webhook_handlers (provider, event_type, kind, name)
values ('shop', 'act', 'sql', 'tests.act'), ('shop', 'slow', 'sql', 'app.slow'), ('shop', 'ts', 'typescript', 'mine');
select pg_temp.event('a', 'act');
select pg_temp.event('b', 'slow');
select pg_temp.event('c', 'ts');
select pg_temp.event('d', 'unheard');
select is(pg_temp.lanes(), 'tests.act app.slow mine -', 'a plain insert puts an event into the lane of its handler');
select bag_eq(
  'select kind, handler_name from webhook.event_lanes()',
  $$ values ('sql', 'tests.act'), ('sql', 'app.slow'), ('typescript', 'mine'), (null, null) $$,
  'each lane tells its handler; events without one have a lane of their own'
);
select results_eq(
  $$ select r.lane = h.lane, r.outcome
     from webhook.record_events(
       '{00000000-0000-4000-8000-000000000002,00000000-0000-4000-8000-000000000001}', '{e,a}', '{act,act}', null, '{"{}","{}"}',
       null, null, '{h,h}', null, null, null
     ) r, public.webhook_handlers h where h.name = 'tests.act' order by r.ordinal $$,
  $$ values (false, 'recorded'), (true, 'duplicate') $$, 'who records is told the lane'
);
delete from public.webhook_events where event_id = 'e';

create temp table taken as select * from webhook.take_events(
  array(select lane from public.webhook_handlers where name in ('tests.act', 'app.slow') order by name desc), '{1,0}'
);
select results_eq('select event_id from taken', $$ values ('a') $$, 'of each lane as many are taken as are wanted');
select is(
  (select count(*)::int from webhook.event_lanes() where handler_name = 'tests.act'), 1,
  'a lane whose events are all taken is told: what a worker knows of its handler stays known'
);

update public.webhook_handlers set name = 'app.fast' where name = 'app.slow';
select is(pg_temp.lanes('b'), 'app.fast', 'a handler that is renamed takes its events along');
insert into public.webhook_handlers (provider, event_type, kind, name) values ('shop', 'un*', 'sql', 'app.un');
select is(pg_temp.lanes('d'), 'app.un', 'a handler that is added gets the events that waited without one');
insert into public.webhook_handlers (provider, event_type, webhook_id, kind, name)
values ('shop', 'un*', '00000000-0000-4000-8000-000000000001', 'typescript', 'mine');
select is(pg_temp.lanes('d'), 'mine', 'or those of another that it comes before');
delete from public.webhook_handlers where name = 'mine';
select is(
  pg_temp.lanes('c') || ' ' || pg_temp.lanes('d'), '- app.un',
  'and one that is removed leaves its events to the next best, or to none'
);

-- One that was locked when its handler changed keeps its lane; played by an update.
insert into public.webhook_handlers (provider, event_type, kind, name) values ('shop', 'ts', 'typescript', 'mine');
update public.webhook_events set lane = 0 where event_id = 'c';
create temp table stray as select * from tests.take(10) where event_id = 'c';
select is((select handler_name from stray), 'mine', 'a worker that takes an event in a wrong lane sees its handler');
select webhook.finish_event(id, lease_token, 'pending') from stray;
select is(pg_temp.lanes('c'), 'mine', 'and hands it back into its own lane');
update public.webhook_events set lane = 0, status = 'dead_letter', next_attempt_at = null where event_id = 'c';
select is((select outcome from webhook.replay_events(array[pg_temp.id('c')], 'ann')), 'replayed', 'a replayed event');
select is(pg_temp.lanes('c'), 'mine', 'is in the lane of the handler that it has now');
update public.webhook_events set lane = 1 where event_id = 'c';
select results_eq(
  'select kind, handler_name from webhook.event_lanes() where lane = 1', 'values (null::text, null::text)',
  'any worker serves a lane without a handler, so that nothing is left behind'
);

-- A backlog in one lane costs the take of another nothing.
insert into public.webhook_events (webhook_id, provider, event_id, event_type)
select '00000000-0000-4000-8000-000000000001', 'shop', 'many-' || n, 'un' from generate_series(1, 5000) n;
select ok(tests.is_cheap(format('webhook.take_events(array[%s], array[100])', lane)), 'a take beside a backlog')
from public.webhook_handlers where name = 'app.fast';
select ok(tests.is_cheap('webhook.event_lanes()'), 'the look for lanes');

select * from finish();
rollback;
