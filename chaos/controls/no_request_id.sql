-- A retry is a new request.
drop index public.one_claim_per_request;
select pg_temp.patch(
  'intake.claim_of_request(text, text, text, boolean)', 'where c.pool_id = p_pool_id', 'where false and c.pool_id = p_pool_id'
);
select pg_temp.patch(
  'intake.known_requests(text, intake.claim_request[])',
  'where c.pool_id = p_pool_id', 'where false and c.pool_id = p_pool_id'
);
