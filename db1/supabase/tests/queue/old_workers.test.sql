-- A worker that knows only the plain functions (read, set CONSUMED, delete, route) leaves claims in the right state.
begin;
select plan(8);

insert into public.inventory_slots (pool_id) select 'plain' from generate_series(1, 4);
select public.claim_resource_and_queue('plain', 'ann');
select public.claim_resource_and_queue('plain', 'bob');
select public.claim_resource_and_queue('plain', 'cid');

update public.inventory_slots set status = 'CONSUMED' where locked_by = 'ann' and pool_id = 'plain';
select isnt_empty(
  $$ select public.intake_queue_delete(array(select msg_id from public.claims where user_id in ('ann', 'bob'))) $$,
  'both messages are deleted'
);
select is(
  (select state::text from public.claims where user_id = 'ann'), 'committed', 'a claim whose slot is CONSUMED is committed'
);
select is(
  (select state::text from public.claims where user_id = 'bob'), 'queued',
  'a claim whose slot is not CONSUMED is not: the worker did not say that the ledger has it'
);
select isnt(
  (select public.intake_route_to_dlq(msg_id, null, 11) from public.claims where user_id = 'cid'), null,
  'a message is routed with whatever payload the worker has'
);
select is(
  (select state::text from public.claims where user_id = 'cid'), 'dead_letter', 'and its claim waits as dead_letter'
);
select public.claim_resource_and_queue('plain', 'fin');
update pgmq.q_intake_queue set message = message || '{"state": "validated"}' where message ->> 'user_id' = 'fin';
select public.intake_route_to_dlq(msg_id, '{"state": "queued"}', 1) from public.claims where user_id = 'fin';
select is(
  (select d.message ->> 'state' from pgmq.q_intake_dlq d join public.claims c on c.msg_id = d.msg_id where c.user_id = 'fin'),
  'validated', 'a message that counts as validated still does, whatever the worker has'
);

insert into public.inventory_slots (id, pool_id, status, locked_by, locked_at)
values ('aaaaaaaa-0000-4000-8000-000000000002', 'plain', 'CONSUMED', 'dee', now());
select public.intake_queue_delete(array[public.intake_queue_send(
  '{"pool_id": "plain", "resource_id": "aaaaaaaa-0000-4000-8000-000000000002", "user_id": "dee", "state": "queued"}'
)]);
insert into public.inventory_slots (id, pool_id, status, locked_by, locked_at)
values ('aaaaaaaa-0000-4000-8000-000000000003', 'plain', 'CONSUMED', 'eve', now());
select public.intake_queue_delete(array[public.intake_queue_send(
  '{"pool_id": "plain", "resource_id": "aaaaaaaa-0000-4000-8000-000000000003", "user_id": "eve", "state": "queued",
    "claim_id": "bbbbbbbb-0000-4000-8000-000000000003"}'
)]);
select is(
  (select slot_id from public.claims where claim_id = 'bbbbbbbb-0000-4000-8000-000000000003'),
  'aaaaaaaa-0000-4000-8000-000000000003', 'an id of its own, which was no claim''s, is the new claim''s'
);
truncate public.inventory_slots;
select is(
  (select available from public.pool_status('plain')), 0::bigint,
  'slots that were consumed without a claim are not sold again after a crash'
);

select * from finish();
rollback;
