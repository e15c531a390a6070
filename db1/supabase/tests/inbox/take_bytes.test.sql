-- A take is bounded by bytes: bodies may have ten megabytes each, and a worker has to hold them.
begin;
select plan(3);

delete from pgmq.q_event_inbox;
select public.inbox_accept(jsonb_build_array(jsonb_build_object(
  'kind', 'event', 'door', 'shop', 'received_at', now(), 'body', repeat('x', 3 * 1048576))))
from generate_series(1, 4);

select results_eq('select count(*)::int from public.inbox_take(100, 60)', 'select 2', 'of four with 3 MB each two are taken at once');
select results_eq('select count(*)::int from public.inbox_take(100, 60)', 'select 2', 'and the others with the next take');
update pgmq.q_event_inbox set vt = clock_timestamp(), read_ct = 0;
select results_eq('select count(*)::int from public.inbox_take(1, 60)', 'select 1', 'nor are more than wanted');

select * from finish();
rollback;
