-- Registration takes types for TypeScript handlers, and never one that belongs to an SQL handler.
begin;
select plan(17);

insert into public.webhook_handlers (provider, event_type, kind, name) values ('shop', 'paid', 'sql', 'app.pay');
create function pg_temp.handler(p_name text, p_type text, p_webhook_id uuid default null)
returns jsonb
language sql
as $$
  select jsonb_build_object('name', p_name, 'provider', 'shop', 'event_type', p_type, 'webhook_id', p_webhook_id)
$$;
create function pg_temp.registered()
returns text
language sql
as $$
  select string_agg(concat_ws(' ', h.event_type, h.kind, h.name), ', ' order by h.event_type, h.webhook_id nulls first)
  from webhook.list_handlers() h where h.provider = 'shop'
$$;

select is(
  webhook.register_handlers(jsonb_build_array(pg_temp.handler('mine', 'sent'), pg_temp.handler('mine', 'pai*'))), 2,
  'types without a handler are taken, also a prefix of a type that has one'
);
-- A bad registration disables its handler alone.
create function pg_temp.faults() returns text
language sql as $$
  select string_agg(f.name || ': ' || f.fault, ', ' order by f.name) from webhook.list_handler_faults() f
$$;
select is(
  webhook.register_handlers(jsonb_build_array(
    pg_temp.handler('mine', 'sent'), pg_temp.handler('mine', 'pai*'), pg_temp.handler('greedy', 'lost'),
    pg_temp.handler('greedy', 'paid'), pg_temp.handler('late', 'sent'), pg_temp.handler('late', 'back'),
    pg_temp.handler('lame', 'lamed') || '{"fault": "has no function apply"}', '{"name": "handler 9", "fault": "is not an object"}'::jsonb
  )), 3, 'of a list with bad ones the good ones are taken'
);
select is(
  pg_temp.registered(),
  'back typescript late, lamed typescript lame, lost typescript greedy, pai* typescript mine, paid sql app.pay, sent typescript mine',
  'a type stays with its SQL handler, or with the first; the other types of the bad ones are theirs'
);
select is(
  pg_temp.faults(),
  'greedy: shop paid belongs to the SQL handler app.pay: give yours a webhookId, the handler of an endpoint comes first, '
    'handler 9: is not an object, lame: has no function apply, late: shop sent is registered twice',
  'each fault is known by the name of its handler'
);
insert into public.webhook_events (webhook_id, provider, event_id, event_type, payload)
select gen_random_uuid(), 'shop', t, t, '{}' from unnest('{sent,lost,back,lamed}'::text[]) t;
select bag_eq(
  $$ select handler_name from webhook.event_lanes() where handler_name is not null or lane = 0 $$, $$ values ('mine') $$,
  'only the lanes of good handlers are worked on'
);
select is(
  (select count(*) from public.webhook_events e
   cross join lateral webhook.begin_typescript_event(e.id, '{mine,greedy,late,lame}') b where e.provider = 'shop'), 1::bigint,
  'an inline delivery takes no event of a disabled handler either'
);
select is(
  webhook.register_handlers(jsonb_build_array(pg_temp.handler('greedy', 'lost'), pg_temp.handler('late', 'back'))), 0,
  'what is mended is registered as before'
);
select is(pg_temp.faults(), 'lame: has no function apply', 'and its fault is gone, as that of one without a name');
select is(webhook.remove_handler('lame', 'ann'), 1, 'so it is with one that is removed');
select is(pg_temp.faults(), null, 'which leaves none');
select is(
  webhook.remove_handler('greedy', 'ann') + webhook.remove_handler('late', 'ann'), 2, 'the mended ones go as others do'
);
select is(
  webhook.register_handlers(jsonb_build_array(
    pg_temp.handler('mine', 'paid', '00000000-0000-4000-8000-000000000001')
  )), 3, 'for one endpoint it is taken'
);
select is(pg_temp.registered(), 'paid sql app.pay, paid typescript mine', 'beside the SQL handler');
select is(
  (select h.name from webhook.find_handlers('{00000000-0000-4000-8000-000000000001}', '{shop}', '{paid}') h), 'mine',
  'and comes first there'
);
select is(
  (select h.name from webhook.find_handlers('{00000000-0000-4000-8000-000000000002}', '{shop}', '{paid}') h), 'app.pay',
  'and nowhere else'
);
select is(
  webhook.register_handlers(jsonb_build_array(
    pg_temp.handler('other', 'paid', '00000000-0000-4000-8000-000000000001')
  )), 1, 'a TypeScript handler may replace another'
);
select is(pg_temp.registered(), 'paid sql app.pay, paid typescript other', 'which then has the type no longer');

select * from finish();
rollback;
