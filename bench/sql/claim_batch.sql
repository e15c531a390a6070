-- pgbench. Dividing by zero ends this client when the pool is sold out.
select 1 / (bench.claim_many(:size, false) > 0)::int;
