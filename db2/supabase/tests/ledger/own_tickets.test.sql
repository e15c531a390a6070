-- A buyer sees its own tickets; only service_role writes.
begin;
select plan(33);

insert into public.confirmed_tickets (resource_id, pool_id, user_id, claim_id)
select ('00000000-0000-4000-8000-00000000000' || n)::uuid, 'own', u, gen_random_uuid()
from (values
  (1, 'a0000000-0000-4000-8000-000000000000'), (2, 'a0000000-0000-4000-8000-000000000000'),
  (3, 'b0000000-0000-4000-8000-000000000000'), (4, 'test_user_1')
) v (n, u);

create function pg_temp.seen(p_role text, p_sub text) returns text language sql as $$
  select tests.as_caller(p_role, p_sub,
    'select string_agg(right(resource_id::text, 1), '','' order by resource_id)
     from public.confirmed_tickets where pool_id = ''own''');
$$;
select is(pg_temp.seen('authenticated', 'a0000000-0000-4000-8000-000000000000'), '1,2', 'a user sees its own tickets');
select is(pg_temp.seen('authenticated', 'b0000000-0000-4000-8000-000000000000'), '3', 'and not those of another');
select is(
  pg_temp.seen('authenticated', 'c0000000-0000-4000-8000-000000000000'), null, 'a user without tickets sees none'
);
select is(pg_temp.seen('authenticated', null), null, 'a token without a user id sees none');
select is(pg_temp.seen('service_role', null), '1,2,3,4', 'service_role sees all');
select is(
  tests.as_caller('authenticated', 'a0000000-0000-4000-8000-000000000000',
    'select string_agg(right(resource_id::text, 1), '','' order by resource_id) from public.my_tickets()'), '1,2',
  'my_tickets shows the same'
);
savepoint planted;
select public.finalize_transaction(jsonb_build_object('resource_id', '00000000-0000-4000-8000-000000000009', 'pool_id', 'own',
  'user_id', 'b0000000-0000-4000-8000-000000000000', 'claim_id', gen_random_uuid(), 'verified', false));
select is(
  pg_temp.seen('authenticated', 'b0000000-0000-4000-8000-000000000000'), '3', 'a ticket that a stranger planted is not shown'
);
select is(
  tests.as_caller('authenticated', 'b0000000-0000-4000-8000-000000000000', 'select count(*) from public.my_tickets()'), '1',
  'nor by my_tickets'
);
rollback to planted;
select throws_ok(
  $$ select tests.as_caller('anon', null, 'select count(*) from public.my_tickets()') $$, '42501', null,
  'without a user there are no tickets of one''s own'
);

select tests.refuses(
  format($$ select tests.as_caller(%L, 'a0000000-0000-4000-8000-000000000000', %L) $$, t.role, t.statement), '42501',
  format('%s may not: %s', t.role, t.statement)
)
from (values
  ('anon', 'select resource_id from public.confirmed_tickets'),
  ('anon', 'select public.finalize_transaction(''{}'')'),
  ('anon', 'select outcome from public.finalize_batch(''[]'')'),
  ('anon', 'select public.ledger_ready()'),
  ('authenticated', 'select public.finalize_transaction(''{}'')'),
  ('authenticated', 'select outcome from public.finalize_batch(''[]'')'),
  ('authenticated', 'insert into public.confirmed_tickets (pool_id, user_id) values (''own'', ''eve'') returning 1'),
  ('authenticated', 'update public.confirmed_tickets set user_id = ''eve'' returning 1'),
  ('authenticated', 'delete from public.confirmed_tickets returning 1'),
  ('service_role', 'update public.confirmed_tickets set user_id = ''eve'' returning 1'),
  ('service_role', 'delete from public.confirmed_tickets returning 1')
) t (role, statement);

select lives_ok(
  $$ select tests.as_caller('service_role', null, 'select public.finalize_transaction(
       ''{"resource_id": "00000000-0000-4000-8000-000000000005", "pool_id": "own", "user_id": "ann"}'')') $$,
  'service_role writes tickets'
);
select is(
  pg_temp.seen('service_role', null), '1,2,3,4,5', 'and sees what it wrote'
);

select * from finish();
rollback;
