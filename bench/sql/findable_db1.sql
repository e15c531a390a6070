-- A million claims of a thousand buyers an hour, nearly all committed; a few of a small pool, a few dead letters, all of the past.
create function public.bench_findable(p_claims int) returns void
language plpgsql set search_path = '' as $$
begin
  insert into public.engine_config (pool_id) values ('large'), ('rare') on conflict do nothing;
  set local session_replication_role = replica;
  insert into public.slot_manifest (slot_id, pool_id, sale_order)
  select gen_random_uuid(), case when n % 10000 = 7 then 'rare' else 'large' end, n from generate_series(1, p_claims) n;
  insert into public.claims (claim_id, pool_id, slot_id, user_id, request_id, request_key, state, claimed_at)
  select (lpad(to_hex(1770000000000 + m.sale_order * 3), 12, '0') || '-7' || substr(gen_random_uuid()::text, 16))::uuid,
    m.pool_id, m.slot_id, 'user ' || m.sale_order % 100000, 'request ' || m.sale_order,
    (left(encode(sha256(convert_to('request ' || m.sale_order, 'UTF8')), 'hex'), 8) || substr(gen_random_uuid()::text, 9))::uuid,
    case when m.sale_order % 25000 = 11 then 'dead_letter' else 'committed' end::public.claim_state,
    to_timestamp(1770000000 + m.sale_order * 0.003)
  from public.slot_manifest m;
end
$$;
