-- pgbench. Dividing by zero ends this client when the pool is sold out.
\set user random(1, 1000000000)
select 1 / (public.claim_resource_and_queue('bench', 'user_' || :user) is not null)::int;
