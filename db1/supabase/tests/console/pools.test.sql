-- Operators make and change pools: in one transaction, with one audit row, or not at all.
begin;
select plan(39);

create function pg_temp.audit() returns text language sql
as $$ select concat_ws('|', actor, action, subject, reason, details) from audit.audit_logs order by id desc limit 1 $$;

select results_eq(
  $$ select pool_id, status, capacity, available, max_per_user, is_active
     from public.pool_create('gig', 120, '{"max_per_user": 2}', 'olga', 'spring') $$,
  $$ values ('gig', 'open', 120::bigint, 120::bigint, 2, true) $$, 'a pool is made with its slots and rules'
);
select is(
  pg_temp.audit(), 'olga|pool_create|pool gig|spring|{"rules": {"max_per_user": 2}, "slots": 120}', 'and an audit row'
);
select isnt(public.claim_resource_and_queue('gig', 'ann'), null, 'it sells');
select tests.refuses($$ select public.pool_create('gig', 1, '{}', 'olga') $$, 'SL014', 'a second of its name is refused');
insert into public.inventory_slots (pool_id) values ('bare');
select tests.refuses($$ select public.pool_create('bare', 1, '{}', 'olga') $$, 'SL014', 'also where it has slots only');
select tests.refuses($$ select public.pool_create('', 1, '{}', 'olga') $$, 'SL001', 'a pool has a name');
select tests.refuses($$ select public.pool_create('x', 1000001, '{}', 'olga') $$, 'SL001', 'a million slots at a time');
select tests.refuses($$ select public.pool_create('x', 1, '{"pool_id": "y"}', 'olga') $$, 'SL001', 'only rules are rules');
select tests.refuses($$ select public.pool_create('x', 1, '{"batch_size": 0}', 'olga') $$, 'SL001', 'the table''s own checks hold');
select tests.refuses($$ select public.pool_create('x', 1, '{}', null) $$, '23502', 'an operator must give a name');

select results_eq(
  $$ select status, max_per_user, commit_rate_per_sec, capacity
     from public.pool_change('gig', '{"is_active": false, "commit_rate_per_sec": 5}', 0, 'olga') $$,
  $$ values ('closed', 2, 5, 120::bigint) $$, 'a change names what it changes, and leaves the rest'
);
select is(
  pg_temp.audit(),
  'olga|pool_change|pool gig|{"after": {"is_active": false, "commit_rate_per_sec": 5}, "before": {"is_active": true, "commit_rate_per_sec": null}, "add_slots": 0}',
  'and the audit row tells what was before'
);
select results_eq(
  $$ select status, capacity from public.pool_change('bare', '{"opens_at": "2999-01-01T00:00:00Z"}', 9, 'olga') $$,
  $$ values ('not_open', 10::bigint) $$, 'a pool without rules gets them, and more slots'
);
create temp table before as select tests.state() as state;
select * from public.pool_change('bare', '{"opens_at": "2999-01-01T00:00:00Z"}', 0, 'olga');
select is(tests.state(), (select state from before), 'a rule that holds already is not a change');

-- One pool is asked for, and only that is counted: a large pool leaves a trace when it is.
insert into public.inventory_slots (pool_id) select 'large' from generate_series(1, 2001);
delete from intake.free_counts;
select is((select available from public.pool_list('bare')), 10::bigint, 'a pool can be asked for by its name');
select is_empty($$ select from intake.free_counts $$, 'and then no other is counted');
select is((select available from public.pool_list('large')), 2001::bigint, 'a large one is');
select isnt_empty($$ select from intake.free_counts where pool_id = 'large' $$, 'and leaves its count');

-- Slots may have labels.
select is(
  (select capacity from public.pool_change('large', '{}', 2, 'olga', null, null, '{"Row 1, seat 1","Row 1, seat 2"}')), 2003::bigint,
  'slots are added with labels'
);
select results_eq(
  $$ select s.label::text, m.label::text from public.inventory_slots s join public.slot_manifest m on m.slot_id = s.id
     where s.pool_id = 'large' and s.label is not null order by s.sale_order $$,
  $$ values ('Row 1, seat 1', 'Row 1, seat 1'), ('Row 1, seat 2', 'Row 1, seat 2') $$, 'in their order, and the manifest has them too'
);
select throws_ok(
  $$ select public.pool_change('large', '{}', 2, 'olga', null, null, '{"one"}') $$, 'SL001', '1 labels for 2 slots',
  'as many labels as slots'
);

-- A request_id makes it safe to ask again.
select is(
  (select capacity from public.pool_change('bare', '{}', 5, 'olga', null, 'r1')), 15::bigint, 'slots are added under a request_id'
);
drop table before;
create temp table before as select tests.state() as state;
select is(
  (select capacity from public.pool_change('bare', '{"is_active": false}', 5, 'olga', null, 'r1')), 15::bigint,
  'asked again, none are added'
);
select is(tests.state(), (select state from before), 'and nothing else changes, also in the audit log');
select tests.refuses(
  $$ select public.pool_change('bare', '{}', 6, 'olga', null, 'r1') $$, 'SL007', 'another number under the same request_id is refused'
);
select is(
  (select capacity from public.pool_change('gig', '{}', 5, 'olga', null, 'r1')), 125::bigint, 'a request_id is of one pool'
);
select is((select capacity from public.pool_create('once', 3, '{}', 'olga', null, 'c1')), 3::bigint, 'a pool is made once');
select is((select capacity from public.pool_create('once', 3, '{}', 'olga', null, 'c1')), 3::bigint, 'and told again');
select tests.refuses($$ select public.pool_create('once', 3, '{}', 'olga', null, 'c2') $$, 'SL014', 'to who asked for it');
select throws_ok($$ select public.pool_change('nowhere', '{}', 0, 'olga') $$, 'SL002', null, 'an unknown pool cannot be changed');

select * from finish();
rollback;
