select pg_advisory_unlock(7312026001);
