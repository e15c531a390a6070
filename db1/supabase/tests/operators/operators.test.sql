-- People with keys: who is known by which key, and what a second call does.
begin;
select plan(13);

select lives_ok($$ select audit.add_operator('Zoë 李', 'viewer', sha256('one'), 'owner') $$, 'a person is added');
select throws_ok(
  $$ select audit.add_operator('Zoë 李', 'admin', sha256('two'), 'owner') $$, 'SL001', 'there is an operator Zoë 李',
  'not a second one of the name'
);
select results_eq(
  $$ select name, role, key_hash, is_revoked from public.known_operators() $$,
  $$ values ('Zoë 李', 'viewer', sha256('one'), false) $$, 'the hash of the key is known'
);
select throws_ok(format($$ select audit.add_operator(%L, 'viewer', sha256('x'), 'owner') $$, n), 'SL001', null, n || ' is not a name')
from unnest(array['admin', 'Owner (ann)', ' a']) n;
select throws_ok(
  $$ select audit.add_operator('ann', 'king', sha256('x'), 'owner') $$, 'SL001', null, 'king is not a role'
);
select audit.rotate_operator('Zoë 李', sha256('three'), 'owner');
select is(
  (select key_hash from public.known_operators()), sha256('three'), 'a rotated key replaces the old one'
);
select is(audit.revoke_operator('Zoë 李', 'owner', 'left'), true, 'a key is revoked');
select is(audit.revoke_operator('Zoë 李', 'owner'), false, 'a second time there is nothing to do');
select throws_ok(
  $$ select audit.rotate_operator('Zoë 李', sha256('four'), 'owner') $$, 'SL001', null, 'a revoked person gets no key that way'
);
select lives_ok($$ select audit.add_operator('Zoë 李', 'admin', sha256('five'), 'owner') $$, 'but comes back');
select results_eq(
  $$ select action from audit.audit_logs where subject = 'operator Zoë 李' order by id $$,
  array['operator_add', 'operator_rotate', 'operator_revoke', 'operator_add'], 'and each change was written down, once'
);

select * from finish();
rollback;
