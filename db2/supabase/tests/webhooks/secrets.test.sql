-- The list of secret names, which the owner keeps, and Vault, of which nothing is seen but what is on it.
begin;
select plan(17);

select is(webhook.allow_secret('OWN_SECRET', 'ann', 'a second shop'), true, 'the owner allows a name');
select is(webhook.allow_secret('OWN_SECRET', 'ann'), false, 'once');
select throws_ok($$ select webhook.allow_secret('whsec_abc', 'ann') $$, '23514', null, 'a name, never a value');
select isnt(webhook.add_endpoint('shop', 'stripe', '{OWN_SECRET}', p_actor => 'ann'), null, 'it can be named then');
select throws_ok(
  $$ select webhook.add_endpoint('home', 'stripe', '{HOME}', p_actor => 'ann') $$, 'SL001',
  'the name HOME is not on the list of secrets', 'what is not on the list cannot'
);
select throws_ok(
  $$ select webhook.add_endpoint('home', 'whatsapp', '{OWN_SECRET}', 'queued', '{"verify_token_name": "HOME"}', 'ann') $$,
  'SL001', null, 'nor as a verify token'
);
select throws_ok(
  $$ select webhook.add_endpoint('home', 'stripe', '{whsec_hunter2}', p_actor => 'ann') $$, 'SL001',
  'new row for relation "webhook_endpoints" violates check constraint "secrets_are_names"', 'and a value is not repeated'
);
select is(webhook.remove_secret('OWN_SECRET', 'ann', 'leaked'), true, 'the owner takes it off again');
select is(webhook.remove_secret('OWN_SECRET', 'ann'), false, 'once');
select lives_ok(
  $$ select webhook.change_endpoint('shop', '{"max_attempts": 3}', 'bob') $$,
  'what names it keeps the name, and changes otherwise'
);
select results_eq(
  $$ select action, subject, reason from audit.audit_logs where action like 'secret%' order by id $$,
  $$ values ('secret_name_allow', 'secret name OWN_SECRET', 'a second shop'),
            ('secret_name_remove', 'secret name OWN_SECRET', 'leaked') $$, 'both are in the audit log'
);
select results_eq(
  $$ select f.* from unnest('{A,HOME}'::text[]) n cross join lateral webhook.find_secret(n) f $$,
  $$ values (true, null::text), (false, null) $$, 'without a Vault no value is found'
);

select is(
  (select doors #> '{secret,A,in_vault}' from webhook.doors()), 'false', 'and the copy of DB1 is told that there is none'
);

-- Supabase's Vault, or a table in its place.
do $$
begin
  if to_regclass('vault.decrypted_secrets') is null then
    create schema vault;
    create table vault.decrypted_secrets (name text, decrypted_secret text);
    insert into vault.decrypted_secrets values ('A', 'kept in Vault'), ('UNLISTED', 'not for servers');
  else
    perform vault.create_secret('kept in Vault', 'A'), vault.create_secret('not for servers', 'UNLISTED');
  end if;
end
$$;
select is(
  tests.as_caller('service_role', '', $$ select string_agg(coalesce(f.value, 'nothing'), ', ' order by n)
    from unnest('{A,B,UNLISTED}'::text[]) n cross join lateral webhook.find_secret(n) f $$),
  'kept in Vault, nothing, nothing', 'of Vault a server sees what is on the list, and nothing else'
);
select is(
  tests.as_caller('service_role', '', $$ select string_agg(concat_ws(' ', n, d.doors #> array['secret', n, 'in_vault']), ', ' order by n)
    from unnest('{A,B,UNLISTED}'::text[]) n cross join webhook.doors() d $$),
  'A true, B false, UNLISTED', 'the copy of DB1 is told which names on the list have a value in Vault'
);
select is((select count(*) from webhook.doors() d where d.doors::text like '%kept in Vault%'), 0::bigint, 'and never the value');
select webhook.allow_secret('UNLISTED', 'ann');
select is(
  (select value from webhook.find_secret('UNLISTED')), 'not for servers', 'negative control: on the list, it would be seen'
);

select * from finish();
rollback;
