-- What has not come to its end in DB1: messages on the queue.
select count(*)::int as waiting from pgmq.q_intake_queue
