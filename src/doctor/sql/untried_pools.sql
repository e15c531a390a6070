-- A message is a dead letter when its deliveries reach max_retries: with 1 the first delivery is not tried.
select c.pool_id from public.engine_config c where c.max_retries < 2 order by c.pool_id;
