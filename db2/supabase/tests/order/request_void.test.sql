-- An operator ends tickets: a row for the courier, and one in the audit log for each claim.
begin;
select plan(14);

select tests.refuses($$ select public.request_void('{}', true, 'bob') $$, 'SL001', 'no claim');
select tests.refuses($$ select public.request_void(null, true, 'bob') $$, 'SL001', 'no list');
select tests.refuses($$ select public.request_void(array[null::uuid], true, 'bob') $$, 'SL001', 'a gap');
select tests.refuses(
  $$ select public.request_void(array_agg(gen_random_uuid()), true, 'bob') from generate_series(1, 1001) $$, 'SL001', 'too many'
);
select tests.refuses($$ select public.request_void(array[tests.claim_id(1)], null, 'bob') $$, 'SL001', 'not whether to refund');
create temp table asked as select public.request_void(array[tests.claim_id(1), tests.claim_id(2)], true, 'bob', 'rain') as id;
select results_eq(
  $$ select o.id, o.kind, o.payment_key, o.fact from public.claim_outbox o $$,
  $$ select id, 'void', null::text, jsonb_build_object('claim_ids', array[tests.claim_id(1), tests.claim_id(2)], 'cause', 'operator',
     'refund', true, 'actor', 'bob', 'reason', 'rain') from asked $$, 'the courier has it'
);
select results_eq(
  $$ select actor, subject, reason, details from audit.audit_logs where action = 'ticket_void' order by id $$,
  $$ select 'bob', 'claim ' || tests.claim_id(c), 'rain', jsonb_build_object('refund', true, 'outbox_id', id)
     from asked, unnest('{1,2}'::int[]) c $$, 'and the log says who asked'
);
select is(
  (select public.outbox_finish(t.id, t.token, '{"claims": 0}') from public.outbox_take(1, 60) t), 'done', 'a void is finished with any answer'
);
select isnt(
  public.request_void(array[tests.claim_id(1)], false, 'bob'), (select id from asked), 'a second request is one of its own'
);

select * from finish();
rollback;
