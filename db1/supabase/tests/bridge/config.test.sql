-- What a worker asks about a pool: its rules.
begin;
select plan(10);

insert into public.engine_config (
  pool_id, max_retries, visibility_timeout_sec, validation_webhook_url, commit_rpc_name, commit_webhook_url, commit_rate_per_sec
) values ('ruled', 3, 7, 'https://example.com/v', 'mine', 'https://example.com/c', 5);
insert into public.engine_config (pool_id) values ('bare');
insert into public.inventory_slots (pool_id) values ('slots_only');

select results_eq(
  $$ select * from public.bridge_config(array['ruled']) $$,
  $$ values ('ruled', 3, 7, 'https://example.com/v', 'mine', 'https://example.com/c', 5, '{}'::text[]) $$,
  'a pool''s rules are its own'
);
select results_eq(
  $$ select * from public.bridge_config(array['bare', 'slots_only']) order by 1 $$,
  $$ values ('bare', 10, 45, null::text, 'finalize_transaction', null::text, null::int, '{}'::text[]),
    ('slots_only', 10, 45, null, 'finalize_transaction', null, null, '{}') $$,
  'a pool without rules, or with slots only, has the defaults'
);
select public.allow_hook_host(h, 'olga') from unnest(array['127.0.0.1:9', 'hooks.internal']) h;
insert into public.engine_config (pool_id, validation_webhook_url) values ('asks', 'https://example.com/v');
insert into public.engine_config (pool_id, commit_webhook_url) values ('tells', 'https://example.com/c');
select results_eq(
  $$ select pool_id, array(select h from unnest(allowed_hosts) h order by h)
     from public.bridge_config(array['ruled', 'asks', 'tells', 'bare', 'slots_only']) order by 1 $$,
  $$ values ('asks', '{127.0.0.1:9,hooks.internal}'::text[]), ('bare', '{}'), ('ruled', '{127.0.0.1:9,hooks.internal}'),
    ('slots_only', '{}'), ('tells', '{127.0.0.1:9,hooks.internal}') $$,
  'a pool with either hook learns which hosts are allowed now, and no other pool does'
);
select public.disallow_hook_host('hooks.internal', 'olga');
select is(
  (select allowed_hosts from public.bridge_config(array['asks'])), array['127.0.0.1:9'],
  'a host that was taken off the list is not among them'
);
select is_empty(
  $$ select * from public.bridge_config(array['unknown', '', null]) $$, 'an unknown pool has no rules, least of all another pool''s'
);
insert into public.engine_config (pool_id) values ('row_only');
select results_eq(
  $$ select batch_size, visibility_timeout_sec, max_retries, commit_rpc_name from intake.default_rules $$,
  $$ select batch_size, visibility_timeout_sec, max_retries, commit_rpc_name from public.engine_config
     where pool_id = 'row_only' $$,
  'the rules of a pool without a row are the defaults of the table'
);
select is_empty($$ select * from public.bridge_config('{}') $$, 'no pools, no rules');
select is_empty($$ select * from public.bridge_config(null) $$, 'nor when none are named');
select results_eq(
  $$ select pool_id from public.bridge_config(array['bare', 'ruled', 'bare', 'unknown']) order by 1 $$,
  array['bare', 'ruled'], 'each pool is answered once'
);
update public.engine_config set is_active = false where pool_id = 'bare';
select results_eq(
  $$ select pool_id from public.bridge_config(array['bare']) $$, array['bare'], 'a closed pool still carries what it has sold'
);

select * from finish();
rollback;
