-- Endpoints: names of secrets, never values; every change leaves an audit row.
begin;
select plan(20);

create function pg_temp.add(p_name text, p_settings jsonb default '{}', p_secrets text[] default '{STRIPE_SECRET}')
returns uuid
language sql
as $$
  select webhook.add_endpoint(p_name, 'stripe', p_secrets, 'queued', p_settings, 'ann', 'because');
$$;

create function pg_temp.audits()
returns bigint
language sql
as $$
  select count(*) from audit.audit_logs where action <> 'rule_change';
$$;

select isnt(pg_temp.add('shop'), null, 'a new endpoint has an id');
select results_eq(
  $$ select provider, mode, secret_names, max_attempts, backoff_cap_sec, lease_sec, max_body_bytes, keep_payload_days,
       is_active
     from webhook.find_endpoint('shop') $$,
  $$ values ('stripe', 'queued', '{STRIPE_SECRET}'::text[], 5, 60, 60, 1048576, null::int, true) $$,
  'it is found by its name, with the defaults'
);
select is_empty($$ select * from webhook.find_endpoint('none') $$, 'an unknown name has no row');
select results_eq(
  $$ select actor, action, subject, reason from audit.audit_logs where action <> 'rule_change' $$,
  $$ values ('ann', 'webhook_endpoint_add', 'webhook endpoint shop', 'because') $$,
  'adding it is in the audit log'
);
select throws_ok($$ select pg_temp.add('shop') $$, 'SL032', null, 'a name is taken once');
select is(pg_temp.audits(), 1::bigint, 'and what was refused is not in the audit log');

select throws_ok($$ select pg_temp.add('Bad Name') $$, 'SL001', null, 'a name is a path segment');
select throws_ok($$ select pg_temp.add('a', '{"colour": "red"}') $$, 'SL001', null, 'an unknown setting is refused');
select throws_ok($$ select pg_temp.add('a', '{"name": "b"}') $$, 'SL001', null, 'the name is not a setting');
select throws_ok(
  $$ select pg_temp.add('a', '{"max_attempts": "many"}') $$, 'SL001', null, 'a setting of another type is refused'
);
select throws_ok(
  $$ select pg_temp.add('a', '{"max_body_bytes": 10485761}') $$, 'SL001', null, 'a body has at most ten megabytes'
);
select throws_ok($$ select pg_temp.add('a', '{}', '{}') $$, 'SL001', null, 'an endpoint without a secret is refused');
select throws_ok(
  $$ select pg_temp.add('a', '{}', '{A,B,C,D,E,F}') $$, 'SL001', null, 'more than five secrets are refused'
);
select throws_ok(
  $$ select pg_temp.add('a', '{}', '{whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw}') $$, 'SL001', null,
  'the value of a secret is refused where a name belongs'
);
select throws_ok(
  $$ select webhook.add_endpoint('a', 'stripe', '{A}', 'queued', '{}', null, null) $$, 'SL001', null,
  'an operator must give a name for the audit log to add an endpoint'
);

select results_eq(
  $$ select secret_names, mode
     from webhook.change_endpoint('shop', '{"secret_names": ["NEW", "OLD"]}', 'bob', 'rotate') $$,
  $$ values ('{NEW,OLD}'::text[], 'queued') $$,
  'rotating puts the new secret beside the old one'
);
select results_eq(
  $$ select is_active, secret_names from webhook.change_endpoint('shop', '{"is_active": false}', 'bob') $$,
  $$ values (false, '{NEW,OLD}'::text[]) $$,
  'disabling leaves the rest as it is'
);
select results_eq(
  $$ select actor, details -> 'before' -> 'secret_names' from audit.audit_logs
     where action = 'webhook_endpoint_change' order by id $$,
  $$ values ('bob', '["STRIPE_SECRET"]'::jsonb), ('bob', '["NEW", "OLD"]') $$,
  'both changes are in the audit log, with what was before'
);
select throws_ok($$ select webhook.change_endpoint('none', '{}', 'bob') $$, 'SL031', null, 'nothing unknown is changed');
select throws_ok(
  $$ select webhook.change_endpoint('shop', '{"mode": "sometimes"}', 'bob') $$, 'SL001', null, 'a mode is one of two'
);

select * from finish();
rollback;
