-- After a crash the slots stay away: the cache is believed.
select pg_temp.patch(
  'intake.rebuild_inventory(text)', 'where m.pool_id = p_pool_id', 'where false and m.pool_id = p_pool_id'
);
