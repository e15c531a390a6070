-- Each event takes its effect, also when another has told the same fact.
alter table public.credit_ledger drop constraint one_credit_per_fact;
select pg_temp.patch(
  'webhook.write_credit(public.payments, text, text, bigint, text)', 'on conflict (provider, business_key) do nothing', ''
);
