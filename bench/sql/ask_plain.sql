-- pgbench. The pool is sold out and says so.
\set user random(1, 1000000000)
select plain.claim_resource_and_queue('bench', 'user_' || :user);
