-- A pool that is paid for has all that a payment needs, and nothing that could come between it and the ticket.
begin;
select plan(26);

insert into public.engine_config (pool_id) values ('rules');
create function pg_temp.refused(p_rules jsonb, p_name text) returns setof text
language sql as $$
  select tests.refuses(format('select public.pool_change(%L, %L, 0, %L)', 'rules', p_rules, 'olga'), 'SL001', p_name);
$$;
create temp table right_rules as select
  '{"confirm_by": "payment", "price": 100, "currency": "eur", "payment_tenant": "stripe", "hold_sec": 60}'::jsonb as rules;

select pg_temp.refused(rules - 'price' - 'currency', 'no price') from right_rules;
select pg_temp.refused(rules - 'currency', 'no currency') from right_rules;
select pg_temp.refused(rules || '{"currency": "EUR"}', 'a currency in upper case') from right_rules;
select pg_temp.refused(rules || '{"price": 0}', 'a price of nothing') from right_rules;
select pg_temp.refused(rules - 'payment_tenant', 'no tenant') from right_rules;
select pg_temp.refused(rules - 'hold_sec', 'no hold') from right_rules;
select pg_temp.refused(rules || '{"hold_sec": 59}', 'a hold that is too short to pay') from right_rules;
select pg_temp.refused(rules || '{"commit_rpc_name": "mine"}', 'a commit function of its own') from right_rules;
select pg_temp.refused(rules || '{"validation_webhook_url": "https://example.com/"}', 'a hook before the ticket') from right_rules;
select pg_temp.refused('{"max_quantity": 11}', 'more than ten slots a request');
select pg_temp.refused('{"expire_grace_sec": 4}', 'hardly any grace');
select pg_temp.refused('{"refund_by": "bank"}', 'a refund by an unknown party');

select results_eq(
  $$ select p.confirm_by, p.price, p.currency, p.payment_tenant, p.payment_livemode, p.max_quantity, p.expire_grace_sec, p.refund_by
     from right_rules r, public.pool_change('rules', r.rules || '{"max_quantity": 4}', 0, 'olga') p $$,
  $$ values ('payment', 100::bigint, 'eur', 'stripe', true, 4, 60, 'sluice') $$, 'what is right is taken'
);
select results_eq(
  $$ select confirm_by, price, currency, max_quantity from public.pool_status('rules') $$,
  $$ values ('payment', 100::bigint, 'eur', 4) $$, 'and buyers see it'
);

select * from finish();
rollback;
