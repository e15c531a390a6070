-- A ticket written as the requirement writes it, without a claim: it is the slot's one ticket, and its user's claim of that slot
-- has it.
begin;
select plan(14);

create function pg_temp.slot(p_n int) returns uuid language sql
as $$ select (tests.ticket(p_n, 'ann') ->> 'resource_id')::uuid $$;
create function pg_temp.insert_ticket(p_n int, p_user text) returns void language sql as $$
  insert into public.confirmed_tickets (resource_id, pool_id, user_id) values (pg_temp.slot(p_n), 'p', p_user)
$$;

select lives_ok($$ select pg_temp.insert_ticket(1, 'ann') $$, 'resource_id, pool_id and user_id make a ticket');
select is(
  (select claim_id from public.confirmed_tickets where resource_id = pg_temp.slot(1)), pg_temp.slot(1),
  'it has its slot''s id for a claim'
);
select tests.refuses($$ select pg_temp.insert_ticket(1, 'ann') $$, '23505', 'a second ticket for the slot is refused');
select tests.refuses($$ select pg_temp.insert_ticket(1, 'bob') $$, '23505', 'also one of another user');
insert into public.confirmed_tickets (resource_id, pool_id, user_id, claim_id)
values (pg_temp.slot(2), 'p', 'bob', pg_temp.slot(3));
select tests.refuses($$ select pg_temp.insert_ticket(3, 'cyd') $$, '23505', 'a claim has one ticket, whichever way it is named');
select is(
  tests.outcomes(tests.ticket(1, 'ann', 1), tests.ticket(1, 'bob', 2)), 'already conflict',
  'a claim of the same user has the ticket, of another user it is a conflict'
);
select is(
  (select string_agg(t.outcome, ' ' order by t.ordinal)
   from public.tickets_of(jsonb_build_array(tests.ticket(1, 'ann', 1), tests.ticket(1, 'bob', 2))) t),
  'already conflict', 'and so it is told without writing'
);
create temp table before as select tests.state() as state;
select is(
  (select v.outcome from public.void_tickets(jsonb_build_array(tests.ticket(1, 'ann', 1) || '{"cause": "released"}')) v),
  'ticket', 'such a claim cannot be voided any more'
);
select is(tests.state(), (select state from before), 'and nothing changes');
select is(
  (select v.outcome from public.void_tickets(jsonb_build_array(tests.ticket(1, 'bob', 2) || '{"cause": "released"}')) v),
  'voided', 'one of another user can'
);
select is(tests.outcomes(tests.ticket(1, 'bob', 2)), 'voided', 'and stays voided');

select * from finish();
rollback;
