-- get_claim shows a claim as it is.
begin;
select plan(4);

insert into public.engine_config (pool_id, hold_sec) values ('look', 30);
insert into public.inventory_slots (pool_id) values ('look');
select public.claim_resource_and_queue('look', 'ann', 'r1');
create temp table mine as select claim_id, slot_id from public.claims where pool_id = 'look';

select results_eq(
  $$ select g.* from mine m, public.get_claim(m.claim_id) g $$,
  $$ select m.claim_id, m.slot_id, 'look', 'ann', 'r1', 'queued', true, now(), now() + interval '30 seconds',
       null::timestamptz, null::text from mine m $$,
  'a live claim shows its slot, pool, user, request, state and hold'
);
select public.release_claim(claim_id, 'ann', 'changed my mind') from mine;
select results_eq(
  $$ select g.state, g.ended_at, g.end_reason from mine m, public.get_claim(m.claim_id) g $$,
  $$ select 'released', now(), 'changed my mind' $$,
  'an ended claim shows when and why'
);
select is_empty($$ select public.get_claim(gen_random_uuid()) $$, 'a claim that is not there is no row');
select is_empty($$ select public.get_claim(null) $$, 'no id is no row');

select * from finish();
rollback;
