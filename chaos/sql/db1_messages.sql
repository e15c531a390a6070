-- Queue, dead letters and what operators took out of these, in one shape. A message is anybody's JSON: what is no object
-- stands in the dead letters as {"payload": …}, and whatever identifies it is text.
select m.place, m.msg_id::text as "msgId", m.message ->> 'claim_id' as "claimId", m.message ->> 'pool_id' as "poolId",
  coalesce(m.message ->> 'claim_id', m.message ->> 'resource_id', m.message ->> 'user_id') as identity,
  coalesce(m.message ->> 'reason', 'max_retries') as reason
from (
  select 'queued' as place, q.msg_id, q.message from pgmq.q_intake_queue q
  union all
  select 'deadLetters', d.msg_id, d.message from pgmq.q_intake_dlq d
  union all
  select 'archivedLetters', a.msg_id, a.message from pgmq.a_intake_dlq a
) m
order by m.place, m.msg_id;
