-- The dead letter of a paid claim is replayed, and not discarded: it ends by a void, which begins in the ledger.
begin;
select plan(12);

select tests.empty_queues();
select tests.paid_pool('dead', 4);
select tests.ask('dead', 'ann');
select tests.settle(tests.payment(tests.order_of('dead', 'ann'), 'pi_1'));
create temp table ann as select * from public.claims where pool_id = 'dead';
select tests.kill('ann');
create temp table before as select tests.state() as state;

select results_eq(
  $$ select outcome, claim_id from public.discard_dead_letters(array[tests.letter_of('ann')], 'olga') $$,
  $$ select 'paid', claim_id from ann $$, 'a discard says that it is paid, and for which claim'
);
select is(
  (select outcome from public.discard_dead_letters(array[tests.letter_of('ann')], 'olga', null, true)), 'paid', 'a dry run says so too'
);
select is(tests.state(), (select state from before), 'and nothing changes');
select is(tests.replay('ann'), 'replayed', 'it can be replayed');
select is(tests.message_of('ann') ->> 'order_id', (select order_id::text from ann), 'and still names its order');
select is((tests.claim_of('dead', 'ann')).paid, true, 'and is paid');

-- By hand, for a slot that is taken: a pool that is paid for gives no other away.
select public.intake_queue_send(jsonb_build_object(
  'pool_id', 'dead', 'resource_id', (select slot_id from ann), 'user_id', 'zoe', 'claim_id', gen_random_uuid()));
select tests.kill('zoe');
select is(tests.replay('zoe'), 'needs_payment', 'a letter without a claim gets no slot of a pool that is paid for');
select is((select count(*) from public.claims where user_id = 'zoe'), 0::bigint, 'and no claim');

-- A refusal, by a hook that the pool got since, does not end it.
update public.engine_config set confirm_by = 'auto', price = null, currency = null where pool_id = 'dead';
create temp table taken as select * from tests.take(9, 60);
select is(tests.finish('ann', 1, 'refused', 'no'), 'refused', 'a refusal of a paid claim');
select is((tests.claim_of('dead', 'ann')).state::text, 'queued', 'leaves it as it is');
select is(
  (select has_message from public.reconcile_claims(p_slot_ids => array(select slot_id from ann))), false, 'reconcile sees that its message is gone'
);
select is(
  (select public.reconcile_fix(slot_id, 'claim_without_message', 'olga') || ' ' || (tests.message_of('ann') ->> 'order_id') from ann),
  (select 'fixed ' || order_id from ann), 'and sends it again, with its order'
);

select * from finish();
rollback;
