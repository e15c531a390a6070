-- The queue is as fast as the slots, and as gone after a crash.
alter table pgmq.q_intake_queue set unlogged;
