-- A released slot is sold again, under a claim of its own.
begin;
select plan(12);

insert into public.inventory_slots (pool_id) select 'again' from generate_series(1, 2);
select public.claim_resource_and_queue('again', 'ann', 'r1');
select public.claim_resource_and_queue('again', 'bob', 'r2');
select is(public.claim_resource_and_queue('again', 'cid', 'r3'), null, 'the pool is sold out');
create temp table old as select * from public.claims where pool_id = 'again' and user_id = 'ann';

select lives_ok($$ select public.release_own_claim(claim_id, 'ann') from old $$, 'a claim of a sold-out pool is released');
select is_empty(
  $$ select from pgmq.q_intake_queue q join old o on o.msg_id = q.msg_id $$,
  'the message of a released claim is withdrawn'
);
select results_eq(
  $$ select s.status::text, s.locked_by, s.locked_at from public.inventory_slots s join old o on o.slot_id = s.id $$,
  $$ values ('AVAILABLE', null::text, null::timestamptz) $$,
  'the slot is on sale again and has no holder'
);
create temp table before as select tests.state() as state;
select results_eq(
  $$ select r.claim_id, r.state from old o, public.release_own_claim(o.claim_id, 'ann', 'once more') r $$,
  $$ select claim_id, 'released' from old $$,
  'a second release returns the released claim'
);
select is(tests.state(), (select state from before), 'a second release changes nothing');

select is(
  public.claim_resource_and_queue('again', 'cid', 'r3'), (select slot_id from old),
  'the released slot of a sold-out pool is found'
);
select isnt(
  (select claim_id from public.claims where pool_id = 'again' and user_id = 'cid'), (select claim_id from old),
  'the slot sold again has a new claim'
);
select results_eq(
  $$ select c.user_id::text, c.state::text from public.claims c join old o on o.slot_id = c.slot_id order by 1 $$,
  $$ values ('ann', 'released'), ('cid', 'queued') $$,
  'the old claim stays, released'
);
create temp table sold_again as select tests.state() as state;
select is(
  (select r.state from old o, public.release_own_claim(o.claim_id, 'ann') r), 'released',
  'a late second release is answered'
);
select is(tests.state(), (select state from sold_again), 'a late second release does not touch the new claim');
select is(public.claim_resource_and_queue('again', 'dan', 'r4'), null, 'the pool is sold out again');

select * from finish();
rollback;
