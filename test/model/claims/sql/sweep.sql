-- What many histories have left as dead rows goes at once.
truncate pgmq.q_intake_queue, pgmq.a_intake_queue, pgmq.q_intake_dlq, pgmq.a_intake_dlq, public.claims,
  public.inventory_slots, public.slot_manifest, public.engine_config, intake.pool_totals, intake.pool_marks,
  audit.audit_logs;
