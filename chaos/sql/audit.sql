-- The subject ends in what the action named: "dead letter 12", "webhook event <id>".
select a.action, a.actor, a.reason, array[regexp_replace(a.subject, '^.* ', '')] as ids
from audit.audit_logs a
order by a.id;
