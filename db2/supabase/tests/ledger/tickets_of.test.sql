-- tickets_of says what finalize_batch would say about tickets that are there, and writes none.
begin;
select plan(7);

create function pg_temp.asked(variadic p_tickets jsonb[]) returns text language sql
as $$ select string_agg(t.ordinal || ' ' || t.outcome, ', ' order by t.ordinal) from public.tickets_of(to_jsonb(p_tickets)) t $$;

select count(*) from public.finalize_batch(jsonb_build_array(tests.ticket(1, 'ann', 1), tests.ticket(2, 'bob')));

select is(
  pg_temp.asked(tests.ticket(3, 'cid', 3), tests.ticket(1, 'ann', 1), tests.ticket(4, 'dan'), tests.ticket(2, 'bob')),
  '2 already, 4 already', 'those with a ticket are told by their place'
);
select is(pg_temp.asked(tests.ticket(3, 'cid', 3)), null, 'who has none has no row');
select is(pg_temp.asked(tests.ticket(1, 'ann')), '1 already', 'without a claim_id the same user has the ticket');
select is(
  pg_temp.asked(
    tests.ticket(1, 'eve', 1), tests.ticket(1, 'ann', 9), tests.ticket(1, 'ann', 1, 'other'), tests.ticket(1, 'eve'),
    tests.ticket(2, 'eve')
  ),
  '1 conflict, 2 conflict, 3 conflict, 4 conflict, 5 conflict',
  'a ticket of another user, claim or pool is a conflict'
);
select is(pg_temp.asked(tests.ticket(1, 'ann', 1), tests.ticket(1, 'ann', 1)), '1 already, 2 already', 'also twice');
select is_empty($$ select * from public.tickets_of('[]') $$, 'no payloads give no answers');
select is((select count(*)::int from public.confirmed_tickets where pool_id = 'p'), 2, 'asking writes no ticket');

select * from finish();
rollback;
