-- Only its owner or an operator can release a claim.
begin;
select plan(26);

insert into public.inventory_slots (pool_id) select 'rel' from generate_series(1, 5);
create temp table mine as
select claim_id, resource_id, ordinal from public.claim_batch(
  array_fill('rel'::text, array[5]), array_fill('ann'::text, array[5]), array['1', '2', '3', '4', '5']
);
create function pg_temp.mine(p_ordinal int) returns uuid language sql
as $$ select claim_id from mine where ordinal = p_ordinal $$;

select tests.refuses(
  $$ select public.release_own_claim(pg_temp.mine(1), 'bob') $$, 'SL006', 'another user may not release a claim'
);
select tests.refuses(
  $$ select public.release_own_claim(gen_random_uuid(), 'ann') $$, 'SL008', 'a claim that is not there is refused'
);
select tests.refuses(
  $$ select public.release_own_claim(null, 'ann') $$, 'SL008', 'no claim at all is refused'
);
select results_eq(
  $$ select claim_id, user_id, state, end_reason, ended_at from public.release_own_claim(pg_temp.mine(1), 'ann') $$,
  $$ select pg_temp.mine(1), 'ann', 'released', 'released', now() $$,
  'the owner releases its claim'
);
select tests.refuses(
  $$ select public.release_own_claim(pg_temp.mine(2), null) $$, 'SL001', 'a release that names no user is refused'
);
select results_eq(
  $$ select state, end_reason from public.release_claim_as_operator(pg_temp.mine(2), 'olga', 'show cancelled') $$,
  $$ values ('released', 'released by an operator') $$,
  'an operator releases any claim'
);
select results_eq(
  $$ select actor, action, reason from audit.audit_logs where details ->> 'claim_id' = pg_temp.mine(2)::text $$,
  $$ values ('olga', 'claim_release', 'show cancelled') $$,
  'and the audit log says who and why'
);
select tests.refuses(
  format($$ select tests.as_caller('authenticated', 'bob',
       'select state from public.release_own_claim(''%s'', ''bob'')') $$,
    pg_temp.mine(3)), 'SL006', 'a signed-in user may not release the claim of another'
);
select tests.refuses(
  format($$ select tests.as_caller('authenticated', 'bob',
       'select state from public.release_own_claim(''%s'', ''ann'')') $$,
    pg_temp.mine(3)), 'SL006', 'a signed-in user may not pass for another'
);
select tests.refuses(
  format($$ select tests.as_caller('authenticated', 'bob',
       'select state from public.release_own_claim(''%s'', null)') $$,
    pg_temp.mine(3)), 'SL006', 'a signed-in user does not count as an operator'
);
select tests.refuses(
  format($$ select tests.as_caller('authenticated', null,
       'select state from public.release_own_claim(''%s'', null)') $$,
    pg_temp.mine(3)), 'SL006', 'a token without a user id does not count as an operator'
);
select tests.refuses(
  format($$ select tests.as_caller('anon', null, 'select state from public.release_own_claim(''%s'', ''ann'')') $$,
    pg_temp.mine(3)), '42501', 'anon may not release at all'
);
select is(
  tests.as_caller('authenticated', 'ann',
    format('select state from public.release_own_claim(%L, ''ann'')', pg_temp.mine(3))), 'released',
  'a signed-in user releases its own claim'
);
select is(
  tests.as_caller('service_role', null,
    format('select state from public.release_claim_as_operator(%L, ''olga'')', pg_temp.mine(4))),
  'released', 'service_role is an operator'
);
select tests.refuses(
  format($$ select tests.as_caller('authenticated', 'ann',
       'select state from public.release_own_claim(''%s'', ''ann'', repeat(''é'', 501))') $$,
    pg_temp.mine(5)), 'SL001', 'a reason of more than 500 characters is refused'
);
select is(
  tests.as_caller('authenticated', 'ann',
    format('select length(end_reason) from public.release_own_claim(%L, ''ann'', repeat(''é'', 500))', pg_temp.mine(5))), '500',
  'one of 500 is kept'
);

select * from finish();
rollback;
