create or replace function public.finalize_batch(p_payloads jsonb)
returns table (ordinal int, resource_id uuid, claim_id uuid, outcome text)
language plpgsql
set search_path = ''
as $$
#variable_conflict use_column
begin
  insert into public.confirmed_tickets (resource_id, pool_id, user_id, claim_id)
  select i.resource_id, i.pool_id, i.user_id, coalesce(i.claim_id, i.resource_id)
  from jsonb_to_recordset(p_payloads) as i (resource_id uuid, pool_id text, user_id text, claim_id uuid)
  on conflict do nothing;
  return query
  select p.ordinal::int, p.resource_id, p.claim_id, 'committed'
  from rows from (
    jsonb_to_recordset(p_payloads) as (resource_id uuid, pool_id text, user_id text, claim_id uuid)
  ) with ordinality as p (resource_id, pool_id, user_id, claim_id, ordinal);
end
$$;
