-- Dead letters of the inbox: replayed or discarded by an operator, each with its audit row.
begin;
select plan(8);

delete from pgmq.q_event_inbox;
delete from pgmq.q_event_inbox_dlq;
insert into pgmq.q_event_inbox_dlq (msg_id, vt, message) overriding system value
select i, now(), jsonb_build_object('kind', 'event', 'door', 'shop', 'received_at', '2026-02-24T10:00:00Z', 'ids', '["evt_' || i || '"]',
  'body', 'e30=', 'reason', 'why', 'tried', 10, 'seen', 9) from generate_series(900001, 900003) i;

select results_eq(
  $$ select * from public.inbox_replay('{900001,77,900001}', 'ann', 'mended') $$, $$ values (77::bigint, 'unknown'), (900001, 'replayed') $$,
  'each id is answered once'
);
select results_eq(
  $$ select message from pgmq.q_event_inbox $$,
  $$ values ('{"kind": "event", "door": "shop", "received_at": "2026-02-24T10:00:00Z", "ids": "[\"evt_900001\"]", "body": "e30="}'::jsonb) $$,
  'it is back as it was accepted, with the moment of its arrival'
);
select results_eq(
  $$ select * from public.inbox_replay('{900001}', 'ann') $$, $$ values (900001::bigint, 'unknown') $$, 'a second replay finds nothing'
);
select results_eq(
  $$ select * from public.inbox_discard('{900002}', 'ann', 'a test') $$, $$ values (900002::bigint, 'discarded') $$, 'another is discarded'
);
select results_eq(
  $$ select a.actor, a.action, a.subject, a.reason from audit.audit_logs a where a.action like 'inbox%' order by a.id $$,
  $$ values ('ann', 'inbox_replay', 'inbox dead letter 900001', 'mended'), ('ann', 'inbox_discard', 'inbox dead letter 900002', 'a test') $$,
  'each action has one audit row'
);
select is_empty(
  $$ select a.id from audit.audit_logs a where a.details -> 'letter' ? 'body' $$, 'which holds no body'
);
select isnt_empty(
  $$ select from pgmq.a_event_inbox_dlq where msg_id = 900002 $$, 'what was discarded is kept in the archive'
);
select results_eq($$ select msg_id from public.inbox_list(true) $$, $$ values (900003::bigint) $$, 'the third still waits');

select * from finish();
rollback;
