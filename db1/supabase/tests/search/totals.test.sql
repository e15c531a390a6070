-- How many rows a list has: exact while that is cheap, else marked. Pages have numbers.
begin;
select plan(20);

select tests.empty_queues();
insert into public.inventory_slots (pool_id) select 'totals' from generate_series(1, 30);
select public.claim_resource_and_queue('totals', 'tom ' || n % 3) from generate_series(1, 30) n;

create function pg_temp.told(p_total intake.total) returns text language sql as $$ select p_total.how || ' ' || p_total.total $$;

select is(pg_temp.told(public.claim_total(p_pool_id => 'totals')), 'exact 30', 'claims of a pool');
select is(pg_temp.told(public.claim_total(p_user_id => 'tom 1')), 'exact 10', 'of a user');
select is(pg_temp.told(public.claim_total(p_pool_id => 'totals', p_state => 'committed')), 'exact 0', 'in a state that none has');
select is(pg_temp.told(public.claim_total(p_claim_id => gen_random_uuid()::text)), 'exact 0', 'one that is not there');
select is(pg_temp.told(intake.counted(10000)), 'exact 10000', 'ten thousand are counted');
select is(pg_temp.told(intake.counted(10001)), 'at_least 10000', 'and no further');
select is(intake.rows_about('public.orders'), null, 'a small table is not estimated');
select is(pg_temp.told(public.order_total()), 'exact 0', 'orders');
select is(
  (public.pool_total()).total, (select count(*) from public.pool_list(p_limit => null)), 'as many pools as the list has'
);
insert into public.engine_config (pool_id) values ('totals a'), ('totals b');
select is(
  (select string_agg(pool_id, ' ') from public.pool_list(p_after => 'totals', p_limit => 1, p_offset => 1)), 'totals b',
  'pools have pages too'
);
select is(
  (public.pool_total()).total, (select count(*) from public.pool_list(p_limit => null)), 'one without slots is a pool'
);
select public.intake_route_to_dlq(msg_id, message, 3) from pgmq.q_intake_queue where message ->> 'user_id' = 'tom 2';
select is(pg_temp.told(public.dead_letter_total(p_pool_id => 'totals')), 'exact 10', 'dead letters of a pool');
select is(pg_temp.told(public.dead_letter_total(p_reason => 'nothing')), 'exact 0', 'of a reason');
select is(pg_temp.told(public.dead_letter_total(p_older_than => '1 hour')), 'exact 0', 'of an age');

select results_eq(
  $$ select claim_id from public.claim_search(p_pool_id => 'totals', p_limit => 10, p_offset => 20) $$,
  $$ select claim_id from public.claims where pool_id = 'totals' order by claim_id desc limit 10 offset 20 $$,
  'the third page of claims by its number'
);
select results_eq(
  $$ select claim_id from public.claim_search(p_pool_id => 'totals', p_limit => 10, p_offset => 10) $$,
  $$ select claim_id from public.claim_search(p_pool_id => 'totals', p_limit => 10, p_after => (
       select claim_id from public.claim_search(p_pool_id => 'totals', p_limit => 10) order by claim_id limit 1
     )) $$,
  'is the page after the last row of the one before'
);
select is(
  (select count(*)::int from public.list_dead_letters(p_pool_id => 'totals', p_limit => 4, p_offset => 8)), 2, 'the last page of letters'
);
select public.release_claim_as_operator(c.claim_id, 'olga', 'r' || row_number() over ()) from (
  select claim_id from public.claims where user_id = 'tom 1' limit 3
) c;
select is(pg_temp.told(public.audit_total(p_actor => 'olga', p_action => 'claim_release')), 'exact 3', 'audit rows of one operator');
select is(
  (select count(*)::int from public.audit_page(p_actor => 'olga', p_limit => 2, p_offset => 2)), 1, 'which have pages too'
);
select is(
  (select a.reason from public.audit_page(p_id => (select max(id) from audit.audit_logs where actor = 'olga')) a), 'r3', 'one by its number'
);

select * from finish();
rollback;
