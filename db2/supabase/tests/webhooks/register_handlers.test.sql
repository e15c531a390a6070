-- Registration takes types for TypeScript handlers, and never one that belongs to an SQL handler.
begin;
select plan(9);

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
  'types of nobody are taken, also a prefix of one that is not'
);
select throws_ok(
  $$ select webhook.register_handlers(jsonb_build_array(pg_temp.handler('mine', 'lost'), pg_temp.handler('mine', 'paid'))) $$,
  'SL001',
  'shop paid belongs to the SQL handler app.pay: give yours a webhookId, the handler of an endpoint comes first',
  'a type of an SQL handler is refused, and said whose it is'
);
select is(
  pg_temp.registered(), 'pai* typescript mine, paid sql app.pay, sent typescript mine', 'and nothing of the list is taken'
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
