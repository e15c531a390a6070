-- A claim that is with the bridge does not expire under its hands.
begin;
select plan(7);

insert into public.engine_config (pool_id, hold_sec, validation_webhook_url) values
  ('direct', 60, null), ('validated', 60, 'https://example.com/validate');
insert into public.inventory_slots (pool_id)
select pool from (values ('direct'), ('validated')) p (pool), generate_series(1, 3);
select public.claim_resource_and_queue('direct', 'ann');
select public.claim_resource_and_queue('validated', 'ann');
select count(*) from public.intake_queue_read(30, 10000);
update public.claims set hold_until = now() - interval '1 second' where pool_id in ('direct', 'validated');

create temp table before as select tests.state() as state;
select is(public.expire_holds(), 0, 'a claim whose message is in the hands of a worker does not expire');
select is(tests.state(), (select state from before), 'and nothing changes');

update pgmq.q_intake_queue set vt = clock_timestamp() - interval '1 second'
where message ->> 'pool_id' in ('direct', 'validated');
select is(
  public.expire_holds(), 1,
  'once the lease has run out the claim that is validated first expires, the other may be in the ledger'
);
select results_eq(
  $$ select pool_id, state::text from public.claims where pool_id in ('direct', 'validated') order by pool_id $$,
  $$ values ('direct', 'queued'), ('validated', 'expired') $$,
  'only the claim of the validated pool has ended'
);
select results_eq(
  $$ select message ->> 'pool_id' from pgmq.q_intake_queue where message ->> 'pool_id' in ('direct', 'validated') $$,
  array['direct'],
  'only its message is withdrawn'
);

select public.claim_resource_and_queue('validated', 'bob');
update public.claims set hold_until = now() - interval '1 second', state = 'validated'
where pool_id = 'validated' and user_id = 'bob';
create temp table validated as select tests.state() as state;
select is(public.expire_holds(), 0, 'a claim that was validated does not expire');
select is(tests.state(), (select state from validated), 'and the validated claim keeps slot and message');

select * from finish();
rollback;
