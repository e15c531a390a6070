-- Releasing a held claim gives all of its order back: at once, or when its session is closed.
begin;
select plan(22);

select tests.paid_pool('back', 9, '{"max_quantity": 2}');
select tests.ask('back', 'ann', 2), tests.ask('back', 'bob'), tests.ask('back', 'cid'), tests.ask('back', 'dan', 2);
create temp table second as
select c.claim_id from public.claims c where c.pool_id = 'back' and c.user_id = 'ann' and c.claim_id <> c.order_id;

select tests.refuses($$ select public.release_own_claim((select claim_id from second), 'bob') $$, 'SL006', 'another user''s');
select is(
  (select r.state from second s, public.release_own_claim(s.claim_id, 'ann', 'no time') r), 'released', 'a claim without a session'
);
select is(tests.states((tests.order_of('back', 'ann')).order_id), 'released released', 'ends at once, with all of its order');
create temp table before as select tests.state() as state;
select is((select r.state from second s, public.release_own_claim(s.claim_id, 'ann') r), 'released', 'a second call is answered');
select is(tests.state(), (select state from before), 'and changes nothing');
select results_eq(
  $$ select distinct c.end_reason, s.status::text from public.claims c join public.inventory_slots s on s.id = c.slot_id
     where c.pool_id = 'back' and c.user_id = 'ann' $$,
  $$ values ('no time', 'AVAILABLE') $$, 'the slots are on sale'
);
select is((public.get_claim((tests.order_of('back', 'ann')).order_id))."order" ->> 'status', 'released', 'the order says so');

-- With an open session.
select tests.checkout(tests.order_of('back', 'dan'));
select results_eq(
  $$ select r.state, r.ending, r.hold_until from public.release_own_claim((tests.order_of('back', 'dan')).order_id, 'dan') r $$,
  $$ values ('held', true, now()) $$, 'it is ending while a session is open'
);
create temp table ending as select tests.state() as state;
select is(
  (select r.ending from public.release_own_claim((tests.order_of('back', 'dan')).order_id, 'dan') r), true, 'a second call is answered'
);
select is(tests.state(), (select state from ending), 'and changes nothing');
select tests.refuses(
  $$ select public.begin_checkout((tests.order_of('back', 'dan')).order_id, 'dan', 'https://a.example.com') $$, 'SL040',
  'no other session begins'
);
select is((select count(*) from public.take_closing(9, 60, true)), 1::bigint, 'the closer is asked for at once');
select is(public.expire_holds(), 0, 'and waited for');
select is_empty($$ select from public.take_ends(9, 60) $$, 'the ledger need not be asked: the claim has no message');
update public.checkouts set state = 'expired' where order_id = (tests.order_of('back', 'dan')).order_id;
select is(public.expire_holds(), 1, 'the session is closed');
select is(tests.states((tests.order_of('back', 'dan')).order_id), 'released released', 'and the claims are released');

-- Paid all the same.
select tests.checkout(tests.order_of('back', 'bob'));
select public.release_own_claim((tests.order_of('back', 'bob')).order_id, 'bob');
select is(tests.settle(tests.payment(tests.order_of('back', 'bob'), 'pi_b')), 'funds in_time', 'a payment that was faster buys');
select results_eq(
  $$ select state::text, end_as from public.claims where pool_id = 'back' and user_id = 'bob' $$,
  $$ values ('queued', null::public.claim_state) $$, 'and the claim does not end any more'
);
select public.close_checkout((tests.checkout(tests.order_of('back', 'cid'))).order_id, 1, null, 'complete', 'pi_c');
select tests.refuses(
  $$ select public.release_own_claim((tests.order_of('back', 'cid')).order_id, 'cid') $$, 'SL041', 'what is being paid stays'
);

select * from finish();
rollback;
