-- Tickets, payments and credits page by page, how many there are, and one payment with its whole story.
begin;
select plan(23);

select webhook.add_endpoint('stripe_live', 'stripe', '{STRIPE_SECRET}', p_actor => 'tests');
select tests.sell_two();
insert into public.confirmed_tickets (resource_id, pool_id, user_id, claim_id)
select gen_random_uuid(), 'listed', 'lisa', ('0198c0de-0000-7000-8000-0000000000' || 10 + n)::uuid from generate_series(1, 9) n;
insert into public.voided_tickets (claim_id, resource_id, pool_id, user_id, confirmed_at, cause)
values
  ('0198c0de-0000-7000-8000-000000000015', gen_random_uuid(), 'elsewhere', 'lisa', now(), 'test'),
  ('0198c0de-0000-7000-8000-0000000000ff', gen_random_uuid(), 'listed', 'lisa', now(), 'rain'),
  ('0198c0de-0000-7000-8000-0000000000fe', gen_random_uuid(), 'listed', 'lisa', null, 'never was one');
insert into public.ticket_uses (claim_id, used_by) values ('0198c0de-0000-7000-8000-000000000019', 'gate');

create function pg_temp.told(p_total webhook.total) returns text language sql as $$ select p_total.how || ' ' || p_total.total $$;
create function pg_temp.ends(p_sql text) returns text language plpgsql as $$
declare
  v_found text;
begin
  execute 'select string_agg(right(t.claim_id::text, 2) || left(t.state, 1), '' '' order by t.n) from (select *, row_number() over () as n from ' || p_sql || ') t'
  into v_found;
  return v_found;
end
$$;

select is(
  pg_temp.ends($$public.ticket_list(p_pool_id => 'listed', p_limit => 4)$$), 'ffv 19u 18v 17v',
  'newest first, those that are void among them, and what never was a ticket left out'
);
select is(
  pg_temp.ends($$public.ticket_list(p_pool_id => 'listed', p_limit => 4, p_after => '0198c0de-0000-7000-8000-000000000017')$$), '16v 15v 14v 13v',
  'the next page by its key'
);
select is(pg_temp.ends($$public.ticket_list(p_pool_id => 'listed', p_limit => 4, p_offset => 4)$$), '16v 15v 14v 13v', 'or by its number');
select is((select state from public.ticket_list(p_claim_id => '0198c0de-0000-7000-8000-000000000018')), 'valid', 'one that is valid');
select is(
  (select string_agg(cause, ' ') from public.ticket_list(p_user_id => 'lisa', p_state => 'void')), 'rain test', 'those of a user that are void'
);
select is((select count(*)::int from public.ticket_list(p_user_id => 'lisa', p_state => 'valid')), 9, 'and those that are not');
select is((select count(*)::int from public.ticket_list(p_order_id => left(tests.claim_id(1)::text, 23))) > 0, true, 'those of an order');
select is(pg_temp.told(public.ticket_total(p_pool_id => 'listed')), 'exact 10', 'as many as there are');
select is(pg_temp.told(public.ticket_total(p_user_id => 'lisa', p_state => 'void')), 'exact 2', 'with the same filters');

insert into public.payments (provider, object_id, told, occurred_at, arrival, last_event_id, amount, currency, captured)
select 'stripe', 'pz_' || n, 'succeeded', now(), n, 'e', 1, 'usd', 1 from generate_series(1, 5) n;
select is(
  (select string_agg(object_id, ' ') from public.payment_list(p_provider => 'stripe', p_limit => 3)), 'pz_5 pz_4 pz_3', 'payments by their keys'
);
select is(
  (select string_agg(object_id, ' ') from public.payment_list(p_after => 'stripe/pz_3', p_limit => 2)), 'pz_2 pz_1', 'the next page by its key'
);
select is((select string_agg(object_id, ' ') from public.payment_list(p_limit => 2, p_offset => 3)), 'pz_2 pz_1', 'or by its number');
select is(
  (select string_agg(object_id, ' ') from public.payment_list(p_user_id => (select user_id from public.payments where object_id = 'pi_1'))) like '%pi_1%',
  true, 'those of a user'
);
select is(pg_temp.told(public.payment_total(p_state => 'succeeded')) like 'exact %', true, 'as many as there are');
select is(
  (select array_agg(id) from public.credit_list(p_limit => 2)), (select array_agg(id order by id desc) from (
    select id from public.credit_ledger order by id desc limit 2) c), 'credits, newest first'
);
select is(
  (select count(*) from public.credit_list(p_kind => 'purchase')), (select count(*) from public.credit_ledger where kind = 'purchase'),
  'of one kind'
);
select is(
  pg_temp.told(public.credit_total()), 'exact ' || (select count(*) from public.credit_ledger), 'as many as there are'
);
select is(public.payment_details('stripe/nothing'), null, 'a payment that is not known');
select is(
  public.payment_details('stripe/pi_1') #>> '{payment,payment_key}', 'stripe/pi_1', 'one that is, with its whole story'
);
select is(
  (select count(*)::int from jsonb_object_keys(public.payment_details('stripe/pi_1')) k
   where k in ('payment', 'credits', 'provider_refunds', 'transactions', 'events', 'outbox', 'refunds', 'audit')),
  8, 'in eight parts'
);
select is(jsonb_path_exists(public.payment_details('stripe/pi_1'), '$.**.token'), false, 'and no token of a lease');
select is(jsonb_array_length(public.payment_details('stripe/pi_1') -> 'credits') > 0, true, 'with its credits');
select is(webhook.event_links(gen_random_uuid()), null, 'an event that is not known has no links');

select * from finish();
rollback;
