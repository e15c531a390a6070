-- The tables as the outside knows them, and the index word for word.
begin;
select plan(14);

select columns_are('public', 'calls', array[
  'id', 'site_id', 'event_id', 'kind', 'payload', 'occurred_at', 'received_at', 'signature_hash'
]);
select col_type_is('public', 'calls', 'signature_hash', 'text', 'the hash is text');
select col_is_null('public', 'calls', 'signature_hash', 'and may be missing');
select is(
  pg_get_indexdef('public.calls_site_signature_hash_uq'::regclass),
  'CREATE UNIQUE INDEX calls_site_signature_hash_uq ON public.calls USING btree (site_id, signature_hash)'
    || ' WHERE (signature_hash IS NOT NULL)',
  'the guard is the index it should be'
);
insert into public.calls (site_id, signature_hash) values ('s', 'h');
select throws_ok($$ insert into public.calls (site_id, signature_hash) values ('s', 'h') $$, '23505', null::text,
  'a plain insert of the same signature is refused');
select lives_ok($$ insert into public.calls (site_id) values ('s'), ('s') $$, 'plain inserts without a signature are not');

select is(calls.add_site('s1', '{}', false, null, 'ann'), true, 'a site that does not sign needs no secret');
select throws_ok($$ select calls.add_site('s2', '{}', true, null, 'ann') $$, '23514', null::text,
  'a site that signs needs the name of a secret');
select throws_ok($$ select calls.add_site('s 2', '{A}', true, null, 'ann') $$, '23514', null::text,
  'a site id fits in a header');
select throws_ok($$ select calls.add_site('s2', '{A,B,C,D,E,F}', true, null, 'ann') $$, '23514', null::text,
  'a site has at most five secrets');
select throws_ok($$ select calls.add_site('s2', '{whsec_value}', true, null, 'ann') $$, '23514', null::text,
  'a secret is named, never kept');
select throws_ok($$ select calls.add_site('s2', '{A,null}', true, null, 'ann') $$, '23514', null::text,
  'and a name must not be null');
select throws_ok($$ select calls.add_site('s2', '{A}', true, '{}', 'ann') $$, '23514', null::text,
  'a site that may send nothing is disabled, not emptied');
select is_empty(
  $$ select c.relname from pg_class c where c.relname in ('calls', 'call_sites') and not c.relrowsecurity $$,
  'both tables have row level security'
);

select * from finish();
rollback;
