-- A rotation puts new secrets in front and keeps the old ones until they are ended, of endpoints and of call sites.
begin;
select plan(11);

select webhook.add_endpoint('shop', 'stripe', '{A}', p_actor => 'ann');
select calls.add_site('s', '{A}', true, null, 'ann');

select throws_ok($$ select webhook.rotate_endpoint('none', '{B}', false, 'bob') $$, 'SL031', null, 'nothing unknown is rotated');
select is_empty($$ select calls.rotate_site('none', '{B}', false, 'bob') $$, 'nor is an unknown site');
select throws_ok($$ select webhook.rotate_endpoint('shop', '{}', true, 'bob') $$, 'SL001', null, 'an endpoint keeps a secret');
select throws_ok(
  $$ select webhook.rotate_endpoint('shop', '{A,B,C,D,E,F}', false, 'bob') $$, 'SL001', null, 'six at once are refused'
);
select is((select count(*)::int from audit.audit_logs where action = 'webhook_endpoint_change'), 0, 'what was refused leaves no audit row');

select results_eq(
  $$ select secret_names from webhook.rotate_endpoint('shop', '{B}', false, 'bob', 'it leaked') $$, $$ values ('{B,A}'::text[]) $$,
  'the new one comes first, and the old one stays'
);
select results_eq(
  $$ select secret_names from webhook.rotate_endpoint('shop', '{B}', false, 'bob') $$, $$ values ('{B,A}'::text[]) $$,
  'a second call changes nothing more'
);
select is(
  webhook.rotated('{G,F}', '{A,B,C,D,E}', false), '{G,F,A,B,C}', 'where there is no room for all, the oldest goes'
);
select results_eq(
  $$ select secret_names from webhook.rotate_endpoint('shop', '{C}', true, 'bob') $$, $$ values ('{C}'::text[]) $$,
  'and only the new one is left where that is asked for'
);
select results_eq(
  $$ select secret_names from calls.rotate_site('s', '{B}', false, 'bob') union all
     select secret_names from calls.rotate_site('s', '{C}', true, 'bob') $$,
  $$ values ('{B,A}'::text[]), ('{C}') $$, 'a site rotates in the same way'
);
select results_eq(
  $$ select actor, action, reason, details -> 'changes' from audit.audit_logs
     where action in ('webhook_endpoint_change', 'call_site_change') order by id limit 1 $$,
  $$ values ('bob', 'webhook_endpoint_change', 'it leaked', '{"secret_names": ["B", "A"]}'::jsonb) $$, 'the audit log has the names'
);

select * from finish();
rollback;
