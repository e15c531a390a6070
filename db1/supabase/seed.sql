-- The demo pool: 1,000 slots for one concert. Safe to run again: the config row stays as it is, and slots are
-- added only while the pool has none. The check asks the manifest of slots ever put on sale, never the UNLOGGED
-- slot table: that one is empty after a crash, and fresh ids for slots already sold would sell them twice.
insert into public.engine_config (pool_id, batch_size, visibility_timeout_sec, max_retries, is_active)
values ('demo_concert_2026', 100, 45, 10, true)
on conflict (pool_id) do nothing;

insert into public.inventory_slots (pool_id, status)
select 'demo_concert_2026', 'AVAILABLE'
from generate_series(1, 1000)
where not exists (
  select 1 from public.slot_manifest where pool_id = 'demo_concert_2026'
);
