-- Dead letters that failed alike are one issue: of one pool, kind of end and shape of the error. It is resolved by a replay, and
-- opened again when it comes back.
begin;
select plan(33);

select tests.empty_queues();
delete from pgmq.q_event_inbox_dlq;
delete from audit.issues;

select is(audit.error_shape(null), null, 'no error has no shape');
select is(audit.error_shape('amount is above 10^15'), 'amount is above #^#', 'numbers do not count');
select is(
  audit.error_shape('event 0190b2c1-7a2e-7c3d-9f00-aabbccddeeff at 2026-02-24T10:00:00Z'), 'event # at #', 'nor do uuids and times'
);
select is(
  audit.error_shape('no route to 10.0.0.7:5432, fe80::1 or https://hooks.example.com/a?b=c of ann@example.com'),
  'no route to #, # or # of #', 'nor do addresses'
);
select is(
  audit.error_shape('column "user" of relation "orders" says ''no way'' in `code`'),
  'column "…" of relation "…" says "…" in "…"', 'nor does what is quoted, however it is quoted'
);
select is(
  audit.error_shape('it isn''t there, and the user''s gone'), 'it isn''t there, and the user''s gone', 'an apostrophe quotes nothing'
);
select is(length(audit.error_shape(repeat('word ', 400))), 200, 'a shape is short enough to be given as a filter');

insert into public.engine_config (pool_id) values ('gig'), ('play');
insert into public.inventory_slots (pool_id) select p from unnest('{gig,play}'::text[]) p, generate_series(1, 10);

-- Claims of the pool end among the dead letters, one for each reason, at once.
create function pg_temp.bury(p_pool text, p_reasons text[]) returns void language plpgsql as $$
declare
  v_many int := cardinality(p_reasons);
  v_msg_ids bigint[];
  v_read_cts int[];
begin
  perform public.claim_resource_and_queue(p_pool, 'user ' || i) from generate_series(1, v_many) i;
  select array_agg(t.msg_id), array_agg(t.read_ct) into v_msg_ids, v_read_cts
  from public.bridge_take(array[intake.lane_of(p_pool)], array[v_many], 60) t;
  perform public.bridge_finish(v_msg_ids, v_read_cts, array_fill('dead_letter'::text, array[v_many]), p_reasons,
    array_fill(0, array[v_many]));
  -- All of a test is one transaction, in which time stands still.
  update pgmq.q_intake_dlq set enqueued_at = clock_timestamp() where enqueued_at = now();
end
$$;
create function pg_temp.issues(p_arguments text default '') returns text language plpgsql as $$
declare
  v_text text;
begin
  execute 'select string_agg(concat_ws('' | '', kind, lane, type, error, failures, state), e''\n'' order by lane, type, error) from '
    || 'public.issue_list(' || p_arguments || ')' into v_text;
  return coalesce(v_text, 'none');
end
$$;
create function pg_temp.id_of(p_type text) returns uuid language sql
as $$ select i.id from audit.issues i where i.type = p_type $$;

select is(pg_temp.issues(), 'none', 'nothing has failed');
select pg_temp.bury('gig', '{max_retries: status 500,max_retries: status 503,malformed}');
select pg_temp.bury('play', '{max_retries: status 500}');
select is(
  pg_temp.issues(),
  'claim | gig | malformed | 1 | open' || e'\n' || 'claim | gig | max_retries | status # | 2 | open' || e'\n'
    || 'claim | play | max_retries | status # | 1 | open',
  'alike are those of one pool, kind and shape'
);
insert into pgmq.q_event_inbox_dlq (vt, message) values (now(), '{"kind": "event", "door": "shop", "reason": "event 7 is refused"}');
select is(
  pg_temp.issues('p_kind => ''delivery'''), 'delivery | shop | event | event # is refused | 1 | open',
  'a delivery that the ledger refused is one of its endpoint'
);
select is(pg_temp.issues('p_lane => ''play'', p_type => ''max_retries'''), 'claim | play | max_retries | status # | 1 | open', 'found by pool and type');
select is(pg_temp.issues('p_state => ''resolved'''), 'none', 'and by state');
select is(
  (select count(*)::int from public.issue_list(p_limit => 1)), 1, 'no more than asked for'
);
select results_eq(
  $$ select i.example_error, i.example_id = (select max(d.msg_id)::text from pgmq.q_intake_dlq d where d.message ->> 'pool_id' = 'play')
     from public.issue_list(p_lane => 'play') i $$,
  $$ values ('max_retries: status 500', true) $$, 'each has its newest as an example'
);

select results_eq(
  $$ select outcome, count(*)::int from public.issue_replay((select id from audit.issues where lane = 'gig' and type = 'max_retries'), 'ann',
       p_dry_run => true) group by 1 $$,
  $$ values ('would_replay', 2) $$, 'the plan of a replay names all of the issue'
);
select is(pg_temp.issues('p_lane => ''gig'', p_type => ''max_retries'''), 'claim | gig | max_retries | status # | 2 | open', 'and changes nothing');
select is((select count(*)::int from audit.audit_logs where action = 'issue_replay'), 0, 'not even the log');
select results_eq(
  $$ select outcome, count(*)::int from public.issue_replay((select id from audit.issues where lane = 'gig' and type = 'max_retries'), 'ann',
       'the hook is mended') group by 1 $$,
  $$ values ('replayed', 2) $$, 'a replay sends all of it round again'
);
select is(pg_temp.issues('p_lane => ''gig'', p_type => ''max_retries'''), 'claim | gig | max_retries | status # | 0 | resolved', 'and resolves it');
select matches(
  (select i.example_error from public.issue_list(p_lane => 'gig', p_type => 'max_retries') i), '^max_retries: status 50[03]$',
  'its example keeps its words'
);
select results_eq(
  $$ select actor, reason, details -> 'outcomes' from audit.audit_logs where action = 'issue_replay' $$,
  $$ values ('ann', 'the hook is mended', '{"replayed": 2}'::jsonb) $$, 'with one row in the log, beside those of the letters'
);
select is(pg_temp.issues('p_lane => ''play'''), 'claim | play | max_retries | status # | 1 | open', 'those of other pools stay');

delete from pgmq.q_intake_queue;
select pg_temp.bury('gig', '{max_retries: status 502}');
select is(
  pg_temp.issues('p_lane => ''gig'', p_type => ''max_retries'''), 'claim | gig | max_retries | status # | 1 | reopened',
  'one that comes back is opened again'
);
select is((select openings from audit.issues where lane = 'gig' and type = 'max_retries'), 2, 'for the second time');

select is(public.issue_resolve(pg_temp.id_of('malformed'), 'ann', 'a typo'), true, 'an operator resolves one by hand');
select is(public.issue_resolve(pg_temp.id_of('malformed'), 'ann'), false, 'the second time does nothing');
select is(pg_temp.issues('p_type => ''malformed'''), 'claim | gig | malformed | 1 | resolved', 'its letters stay, and do not open it');
select is(public.issue_resolve(gen_random_uuid(), 'ann'), null, 'an unknown one is not resolved');

delete from pgmq.q_intake_dlq where message ->> 'pool_id' = 'play';
select is(pg_temp.issues('p_lane => ''play'''), 'claim | play | max_retries | status # | 0 | resolved', 'one of which nothing is left is resolved by itself');
select pg_temp.bury('play', '{max_retries: status 500}');
select is(
  pg_temp.issues('p_lane => ''play'''), 'claim | play | max_retries | status # | 1 | open',
  'and is the same again where it comes back within ten minutes'
);

-- What a sample has of them costs the same however many there are.
insert into audit.issues (id, kind, type, failures, dead_letters, first_seen_at, last_seen_at, example_id, opened_at, resolved_at)
select gen_random_uuid(), 'k', 'n' || n, 1, 1, now(), now() + n * interval '1 second', 'x', now(), case when n > 1100 then now() end
from generate_series(1, 1200) n;
select is((audit.open_issues() ->> 'open')::int, 1000, 'open issues are counted up to 1000');
select is(
  (select string_agg(i ->> 'type', ' ') from jsonb_array_elements(audit.open_issues() -> 'newest') i), 'n1100 n1099 n1098 n1097 n1096',
  'those that were seen last come first, and none that is resolved'
);
delete from audit.issues where kind = 'k' and type <> 'n7';
select is(
  (audit.open_issues() ->> 'open')::int, (select count(*)::int from audit.issues where resolved_at is null), 'fewer are counted exactly'
);

select * from finish();
rollback;
