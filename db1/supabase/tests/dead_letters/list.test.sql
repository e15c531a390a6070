-- The listing of the dead letters: filters, pages, and nothing is hidden from the next look.
begin;
select plan(17);

delete from pgmq.q_intake_dlq;
insert into public.inventory_slots (pool_id) select p from unnest(array['x', 'y']) p, generate_series(1, 3);
select public.claim_resource_and_queue('x', 'ann');
select public.intake_route_to_dlq(c.msg_id, q.message, 11)
from public.claims c join pgmq.q_intake_queue q on q.msg_id = c.msg_id where c.pool_id = 'x';
insert into pgmq.q_intake_dlq (vt, enqueued_at, message) values
  (now() + interval '1 hour', now() - interval '2 days', '{"pool_id": "y", "user_id": "bob", "reason": "23514: no"}'),
  (now(), now() - interval '3 hours', '{"pool_id": "x", "user_id": "cyd", "reason": "unknown_pool"}'),
  (now(), now(), '{"payload": null, "reason": "malformed: not an object"}'),
  (now(), now(), 'null'), (now(), now(), '[1]'), (now(), now(), null);
create temp table letters as select d.msg_id, row_number() over (order by d.msg_id) as place from pgmq.q_intake_dlq d;

select results_eq(
  'select msg_id from public.list_dead_letters()', 'select msg_id from letters order by 1', 'all are listed, oldest first'
);
select results_eq(
  'select msg_id from public.list_dead_letters()', 'select msg_id from letters order by 1', 'and again: a listing hides nothing'
);
select is((select count(*)::int from pgmq.q_intake_dlq where read_ct > 0), 0, 'nor does it touch them');
select results_eq(
  $$ select pool_id, user_id, reason, final_read_ct, claim_state, claim_id is not null, resource_id is not null,
       original_msg_id is not null, message ->> 'user_id' from public.list_dead_letters(p_limit => 1) $$,
  $$ values ('x', 'ann', 'max_retries', '11', 'dead_letter', true, true, true, 'ann') $$,
  'a letter is shown with its claim and its history'
);
create function pg_temp.listed(p_arguments text) returns bigint[] language plpgsql
as $$
declare
  v_places bigint[];
begin
  execute format(
    'select array_agg(l.place order by l.place) from public.list_dead_letters(%s) d join letters l on l.msg_id = d.msg_id', p_arguments
  ) into v_places;
  return v_places;
end
$$;
select is(pg_temp.listed(t.arguments), t.places::bigint[], t.name)
from (values
  ('p_pool_id => ''x''', '{1,3}', 'by pool'),
  ('p_pool_id => ''nowhere''', null, 'of a pool that has none'),
  ('p_reason => ''unknown_pool''', '{3}', 'by reason'),
  ('p_reason => ''23514''', '{2}', 'by the beginning of a reason'),
  ('p_reason => ''max_retries''', '{1,5,6,7}', 'one without a reason ran out of attempts'),
  ('p_reason => ''%''', null, 'a reason is text, no pattern'),
  ('p_older_than => interval ''1 hour''', '{2,3}', 'by age'),
  ('p_older_than => interval ''1 day'', p_pool_id => ''x''', null, 'filters are joined by and'),
  ('p_limit => 2', '{1,2}', 'a page'),
  ('p_limit => 2, p_after => (select msg_id from letters where place = 2)', '{3,4}', 'and the next'),
  ('p_after => (select max(msg_id) from letters)', null, 'until there is none'),
  ('p_after => null, p_limit => 1', '{1}', 'a page after nothing is the first'),
  ('p_msg_ids => (select array_agg(msg_id) from letters where place in (2, 4)) || 0::bigint', '{2,4}', 'by id')
) t (arguments, places, name);

select * from finish();
rollback;
