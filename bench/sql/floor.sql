-- pgbench. One row, one commit: nothing durable is faster one by one.
\set user random(1, 1000000000)
insert into plain.floor (payload) values ('user_' || :user);
