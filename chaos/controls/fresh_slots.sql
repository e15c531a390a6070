-- After a crash the pool is seeded again, as somebody would who finds the table empty: what was sold is sold again.
select pg_temp.patch(
  'intake.rebuild_inventory(text)', E'    m.slot_id,\n    m.pool_id,', E'    gen_random_uuid(),\n    m.pool_id,'
);
select pg_temp.patch('intake.rebuild_inventory(text)', '''CONSUMED''', '''AVAILABLE''');
select pg_temp.patch('intake.rebuild_inventory(text)', '''RESERVED''', '''AVAILABLE''');
