-- The audit row is written by somebody else, who now and then does not come.
select pg_temp.patch(
  'intake.write_audit(text, text, bigint, text, jsonb, text)',
  'insert into audit.audit_logs (actor, action, subject, reason, details)
  values (p_actor, p_action, ''dead letter '' || p_msg_id, p_reason, jsonb_build_object(
    ''outcome'', p_outcome, ''claim_id'', p_letter -> ''claim_id'', ''pool_id'', p_letter -> ''pool_id'', ''letter'', p_letter
  ));',
  'insert into audit.audit_logs (actor, action, subject, reason)
  select p_actor, p_action, ''dead letter '' || p_msg_id, p_reason where random() < 0.5;'
);
