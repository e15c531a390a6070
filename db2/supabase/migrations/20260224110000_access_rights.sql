-- LEDGER, last part: who may do what. Everything is closed, then opened by name; the golden list is
-- db2/supabase/tests/access/. Correct whatever default privileges the project came with.

revoke all on all tables in schema public from public, anon, authenticated, service_role;
revoke all on all sequences in schema public from public, anon, authenticated, service_role;
revoke all on all functions in schema public from public, anon, authenticated, service_role;

grant execute on function public.finalize_transaction(jsonb) to service_role;
grant execute on function public.finalize_batch(jsonb) to service_role;
grant execute on function public.tickets_page(uuid, int, uuid[]) to service_role;
grant execute on function public.ledger_ready() to service_role;
grant execute on function public.webhook_sample() to service_role;
grant execute on function public.ledger_sample() to service_role;
grant execute on function public.ticket_of_claim(uuid) to service_role;
grant execute on function public.audit_page(bigint, int) to service_role;
grant execute on function public.ledger_health() to service_role;

-- The row policy narrows this to a user's own tickets.
grant select on public.confirmed_tickets to authenticated;
grant select, insert on public.confirmed_tickets to service_role;
