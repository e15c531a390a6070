-- The copy of endpoints and sites, by which a door verifies while DB2 is away.
begin;
select plan(15);

delete from intake.copied_doors;
delete from intake.doors_copied;

select results_eq(
  $$ select door, read_at from public.copied_door('endpoint', 'shop') $$, $$ values (null::jsonb, null::timestamptz) $$,
  'before the first copy nothing is known, not even that an endpoint does not exist'
);
select ok(
  public.copy_doors(
    '{"endpoint": {"shop": {"mode": "queued"}}, "site": {"s": {}}, "secret": {
      "A_SECRET": {"in_vault": true}, "OF_SERVERS": {"in_vault": false}, "UNSAID": {}}}',
    '2026-02-24 10:00Z'
  ),
  'a first copy is taken'
);
select results_eq(
  $$ select door ->> 'mode', read_at from public.copied_door('endpoint', 'shop') $$,
  $$ values ('queued', '2026-02-24 10:00Z'::timestamptz) $$, 'an endpoint is found, and how old the copy is'
);
select results_eq(
  $$ select door, read_at from public.copied_door('endpoint', 'unknown') $$,
  $$ values (null::jsonb, '2026-02-24 10:00Z'::timestamptz) $$, 'one that DB2 did not have is known not to exist'
);
select results_eq(
  $$ select n, s.is_allowed, s.in_vault, s.value
     from unnest('{A_SECRET,OF_SERVERS,UNSAID,B}'::text[]) n cross join lateral public.copied_secret(n) s $$,
  $$ values ('A_SECRET', true, true, null::text), ('OF_SERVERS', true, false, null), ('UNSAID', true, true, null),
            ('B', false, false, null) $$,
  'names of secrets are known, whether DB2''s Vault has a value, and no values'
);
select is(
  public.copy_doors('{"endpoint": {}, "site": {}, "secret": {}}', '2026-02-24 09:59Z'), false, 'an older look changes nothing'
);
select is(
  (select read_at from public.copied_door('endpoint', 'shop')), '2026-02-24 10:00Z'::timestamptz, 'and the time stays'
);
select ok(
  public.copy_doors('{"endpoint": {"shop": {"mode": "inline"}}, "site": {}, "secret": {}}', '2026-02-24 10:01Z'), 'a later look is taken'
);
select results_eq(
  $$ select c.kind, c.name, c.door ->> 'mode' from intake.copied_doors c $$, $$ values ('endpoint', 'shop', 'inline') $$,
  'what changed is changed, and what is gone is gone'
);
select ok(
  public.copy_doors('{"endpoint": {"shop": {"mode": "inline"}}, "site": {}, "secret": {}}', '2026-02-24 10:01Z'),
  'the same look again is fine'
);
select ok(
  public.copy_doors('{"endpoint": {"forged": {}}, "site": {}, "secret": {}}', '2100-01-01'), 'a look from the future counts as one from now'
);
select ok(
  public.copy_doors('{"endpoint": {"shop": {}}, "site": {}, "secret": {}}', now()), 'and the next one replaces it'
);
select results_eq(
  $$ select c.name, d.read_at from intake.copied_doors c cross join intake.doors_copied d $$, $$ values ('shop', now()) $$,
  'with what it found and its time'
);
update intake.doors_copied set read_at = '2100-01-01';
select ok(
  public.copy_doors('{"endpoint": {}, "site": {}, "secret": {}}', '2026-02-24 10:00Z'),
  'so it does where the clock of this database went back since, however old it looks'
);
select is(
  (select read_at from public.copied_door('endpoint', 'shop')), '2026-02-24 10:00Z'::timestamptz, 'whose time it has then'
);

select * from finish();
rollback;
