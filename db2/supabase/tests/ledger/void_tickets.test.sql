-- A claim that has ended never becomes a ticket; one that is a ticket stays one.
begin;
select plan(17);

create function pg_temp.void(variadic p_claims jsonb[]) returns text language sql as $$
  select string_agg(v.outcome, ' ' order by p.n)
  from unnest(p_claims) with ordinality p (claim, n)
  join public.void_tickets(to_jsonb(p_claims)) v on v.claim_id = (p.claim ->> 'claim_id')::uuid
$$;
create function pg_temp.claim(p_slot int, p_user text, p_claim int) returns jsonb language sql as $$
  select tests.ticket(p_slot, p_user, p_claim) || '{"cause": "released"}'
$$;
select is(tests.outcomes(tests.ticket(1, 'ann', 1)), 'committed', 'a claim is a ticket');
create temp table before as select tests.state() as state;
select is(pg_temp.void(pg_temp.claim(1, 'ann', 1)), 'ticket', 'it stays one');
select is(tests.state(), (select state from before), 'and nothing changes');
select is(
  pg_temp.void(pg_temp.claim(1, 'ann', 1), pg_temp.claim(2, 'bob', 2), pg_temp.claim(3, 'cyd', 3)), 'ticket voided voided',
  'each claim has its answer'
);
select results_eq(
  $$ select right(resource_id::text, 1), pool_id, user_id, confirmed_at, voided_at, cause from public.voided_tickets order by 1 $$,
  $$ values ('2', 'p', 'bob', null::timestamptz, now(), 'released'), ('3', 'p', 'cyd', null, now(), 'released') $$,
  'a voided one has its tombstone'
);
select is((select count(*)::int from public.confirmed_tickets where pool_id = 'p'), 1, 'and no placeholder is left');
create temp table after as select tests.state() as state;
select is(
  pg_temp.void(pg_temp.claim(1, 'ann', 1), pg_temp.claim(2, 'bob', 2)), 'ticket voided', 'a second call says the same'
);
select is(
  tests.outcomes(tests.ticket(1, 'ann', 1), tests.ticket(2, 'bob', 2)), 'already voided', 'its late ticket is refused'
);
select tests.refuses(
  format($$ select public.finalize_transaction(%L) $$, tests.ticket(2, 'bob', 2)), 'SL021', 'one by one as well'
);
select is(tests.state(), (select state from after), 'and nothing changes');
select is(tests.outcomes(tests.ticket(2, 'dan', 4)), 'committed', 'the slot is the next buyer''s');
select is(tests.outcomes(tests.ticket(3, 'zed')), 'committed', 'also of one who comes by hand, without a claim');
select is(
  tests.outcomes(tests.ticket(2, 'bob', 2), tests.ticket(5, 'eve', 5), tests.ticket(5, 'eve', 5)),
  'voided committed already', 'in a batch the others have their tickets'
);
select is(
  tests.as_caller('service_role', null, 'select count(*) from public.void_tickets(''[]'')'), '0', 'service_role may void'
);
select is(
  tests.as_caller('authenticated', 'a0000000-0000-4000-8000-000000000000', 'select count(*) from public.voided_tickets'), '0',
  'a user sees no tombstone of another'
);
select throws_ok(
  $$ select tests.as_caller('service_role', null, 'delete from public.voided_tickets returning 1') $$, '42501', null,
  'service_role cannot delete one'
);

select * from finish();
rollback;
