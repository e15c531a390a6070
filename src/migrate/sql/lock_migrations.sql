-- The number is this product's own and means nothing; two runs at once on one database take turns.
select pg_advisory_lock(7312026001);
