-- A message put on the queue by hand, once, however often this is asked: by its claim_id.
select pgmq.send('intake_queue', $1::jsonb)
where not exists (
  select from (
    select q.message from pgmq.q_intake_queue q
    union all
    select d.message from pgmq.q_intake_dlq d
    union all
    select a.message from pgmq.a_intake_dlq a
  ) m
  where m.message ->> 'claim_id' = $1::jsonb ->> 'claim_id'
)
