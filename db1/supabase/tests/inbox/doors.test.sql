-- The copy of endpoints and sites, by which a door verifies while DB2 is away.
begin;
select plan(10);

delete from intake.copied_doors;
delete from intake.doors_copied;

select results_eq(
  $$ select door, read_at from public.copied_door('endpoint', 'shop') $$, $$ values (null::jsonb, null::timestamptz) $$,
  'before the first copy nothing is known, not even that an endpoint does not exist'
);
select ok(
  public.copy_doors('{"endpoint": {"shop": {"mode": "queued"}}, "site": {"s": {}}, "secret": {"A_SECRET": {}}}', '2026-02-24 10:00Z'),
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
  $$ select is_allowed, value from public.copied_secret('A_SECRET') union all select is_allowed, value from public.copied_secret('B') $$,
  $$ values (true, null::text), (false, null) $$, 'names of secrets are known, and no values'
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

select * from finish();
rollback;
