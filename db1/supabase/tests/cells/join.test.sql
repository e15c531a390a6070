-- A database becomes a cell once, for life; the ids of its dead letters begin with its number.
begin;
select plan(12);
-- A rollback does not set a sequence back; other files count on small numbers.
create temp table before as select last_value, is_called from pgmq.q_intake_dlq_msg_id_seq;
select tests.empty_queues();
delete from intake.cells;

select results_eq($$ select name, number, is_draining from public.cell_here() $$, $$ values ('', 0, false) $$,
  'a database that belongs to no fleet has no name');
select tests.refuses($$ select public.cell_join('Not A Word', 1, 'ann') $$, 'SL001', 'what is not a name is refused');
select tests.refuses($$ select public.cell_drain('ann') $$, 'SL001', 'what is not a cell is not drained');
select results_eq($$ select * from public.cell_join('b', 3, 'ann') $$, $$ values ('b', 3, false) $$, 'it joins');
select results_eq($$ select * from public.cell_join('b', 9, 'ann') $$, $$ values ('b', 3, false) $$, 'a second time its number stays');
select tests.refuses($$ select public.cell_join('c', 4, 'ann') $$, 'SL001', 'a cell keeps its name');
select is(pgmq.send('intake_dlq', '{"pool_id": "x"}') >> 40, 3::bigint, 'ids of dead letters begin with its number');
select is(public.cell_drain('ann'), true, 'it is drained');
select is(public.cell_drain('ann'), false, 'once');
select * from finish();
select setval('pgmq.q_intake_dlq_msg_id_seq', b.last_value, b.is_called) from before b;
rollback;
