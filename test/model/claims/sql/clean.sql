-- Replica: the triggers that keep manifest and marks in step would undo each other's work here.
set session_replication_role = replica;
delete from pgmq.q_intake_queue;
delete from pgmq.a_intake_queue;
delete from pgmq.q_intake_dlq;
delete from pgmq.a_intake_dlq;
delete from public.claims;
delete from public.inventory_slots;
delete from public.slot_manifest;
delete from public.engine_config;
delete from intake.pool_totals;
delete from intake.pool_marks;
delete from audit.audit_logs;
set session_replication_role = origin;
