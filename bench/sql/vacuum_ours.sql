vacuum (analyze)
  public.inventory_slots, public.claims, public.slot_manifest, public.engine_config,
  intake.pool_totals, intake.pool_marks, pgmq.q_intake_queue;
