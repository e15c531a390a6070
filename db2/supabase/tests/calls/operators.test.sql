-- Operators add and change sites, each with an audit row, and look at calls.
begin;
select plan(16);

select is(calls.add_site('s', '{A}', true, '{ring}', 'ann', 'new branch'), true, 'a site is added');
select is(calls.add_site('s', '{B}', false, null, 'bob'), false, 'a second one of the same id is not');
select results_eq(
  $$ select secret_names, require_signature, kinds, is_active from calls.find_site('s') $$,
  $$ values ('{A}'::text[], true, '{ring}'::text[], true) $$, 'and changes nothing'
);
select results_eq(
  $$ select actor, action, subject, reason, details -> 'secret_names' from audit.audit_logs
     where action <> 'rule_change' order by id $$,
  $$ values ('ann', 'call_site_add', 'call site s', 'new branch', '["A"]'::jsonb) $$, 'one audit row tells of it'
);
select results_eq(
  $$ select secret_names, is_active from calls.change_site('s', '{"secret_names":["B","A"]}', 'bob', 'rotation') $$,
  $$ values ('{B,A}'::text[], true) $$, 'secrets rotate'
);
select results_eq(
  $$ select is_active, secret_names from calls.change_site('s', '{"is_active":false}', 'bob') $$,
  $$ values (false, '{B,A}'::text[]) $$, 'a site is disabled, and keeps the rest'
);
select results_eq(
  $$ select details -> 'changes', details -> 'before' -> 'is_active' from audit.audit_logs
     where action = 'call_site_change' order by id $$,
  $$ values ('{"secret_names":["B","A"]}'::jsonb, 'true'::jsonb), ('{"is_active":false}', 'true') $$,
  'each change has its audit row, with what was before'
);
select is_empty($$ select calls.change_site('x', '{"is_active":false}', 'bob') $$, 'an unknown site is not changed');
select throws_ok($$ select calls.change_site('s', '{"site_id":"t"}', 'bob') $$, 'SL001', null::text,
  'nothing else of a site changes');
select throws_ok($$ select calls.change_site('s', '{"secret_names":[]}', 'bob') $$, '23514', null::text,
  'a site that signs keeps a secret');
select is((select count(*)::int from audit.audit_logs where action <> 'rule_change'), 3, 'what was refused leaves no audit row');
select is((select count(*)::int from calls.list_sites()), 1, 'sites are listed');
select is_empty($$ select calls.list_sites('s') $$, 'a page begins after the id it is given');

select calls.record_calls('{s,s,t}', '{e1,e2,e1}', '{ring,hang,ring}', '{"{}","{}","{}"}',
  array_fill('2026-02-24T10:00:00Z'::timestamptz, array[3]), '{h1,h2,null}');
select bag_eq($$ select site_id, event_id, is_signed from calls.list_calls() $$,
  $$ values ('s', 'e1', true), ('s', 'e2', true), ('t', 'e1', false) $$, 'calls are listed');
select is((select count(*)::int from calls.list_calls('s', 'e1', 'ring')), 1, 'and filtered');
select is(
  (select s.event_id from calls.list_calls('s', 'e2') l cross join lateral calls.show_call(l.id) s), 'e2', 'a call is shown'
);

select * from finish();
rollback;
