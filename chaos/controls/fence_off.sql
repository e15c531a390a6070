-- Whoever finishes a message finishes it, whether or not somebody else has it by now.
select pg_temp.patch(
  'intake.finish_committed(bigint[], int[])',
  'and ((q.msg_id, q.read_ct) in (select * from unnest(p_msg_ids, p_read_cts))) is true', ''
);
select pg_temp.patch(
  'intake.held_deliveries(bigint[], int[], text[], text[], int[])', ' and t.read_ct = q.read_ct', ''
);
