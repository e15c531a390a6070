-- Whoever loses its lease once is lost for good: that its worker or the database was away is the event's fault.
select pg_temp.patch(
  'webhook.lock_due(timestamptz, int, text[], uuid)', 'c_takeovers_max constant int := 10', 'c_takeovers_max constant int := 1'
);
