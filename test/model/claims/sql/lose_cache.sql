-- What a crash does to the UNLOGGED tables, without a trigger that could notice it.
set session_replication_role = replica;
delete from public.inventory_slots;
delete from intake.pool_marks;
delete from intake.pool_allowances;
set session_replication_role = origin;
