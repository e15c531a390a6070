-- One question finds claims, slots, orders, messages, letters, users, pools, issues, operators and audit rows.
begin;
select plan(42);

select tests.empty_queues();
insert into public.inventory_slots (pool_id) select 'search_p' from generate_series(1, 5);
select public.claim_resource_and_queue('search_p', u, 'request-of-' || u) from unnest(array['zoe', 'zoë', 'zoo', 'Zoe']) u;
select public.intake_route_to_dlq(msg_id, message, 3) from pgmq.q_intake_queue where message ->> 'user_id' = 'zoo';

-- What is found, as "kind id" without what differs from run to run.
create function pg_temp.kinds(p_q text) returns text language sql
as $$ select string_agg(distinct f.kind || ' ' || f.why, ', ' order by f.kind || ' ' || f.why) from public.search_intake(p_q) f $$;
create function pg_temp.users(p_q text) returns text language sql
as $$ select string_agg(f.id, ' ' order by f.id collate "C") from public.search_intake(p_q) f where f.kind = 'user' $$;
create function pg_temp.claim_of(p_user text) returns text language sql
as $$ select claim_id::text from public.claims where user_id = p_user $$;

select is((intake.uuid_range('019A')).first, '019a0000-0000-0000-0000-000000000000'::uuid, 'a beginning is a range');
select is((intake.uuid_range('019A')).last, '019affff-ffff-ffff-ffff-ffffffffffff'::uuid, 'up to its last uuid');
select is((intake.uuid_range('019')).first, null, 'three digits are none');
select is((intake.uuid_range('019-a123')).first, null, 'nor is one with a dash where none is printed');
select is((intake.uuid_range('019a1234-5')).first, '019a1234-5000-0000-0000-000000000000'::uuid, 'a dash is where a uuid has one');
select is((intake.uuid_range(repeat('a', 33))).first, null, 'nor what is longer than a uuid');
select is((intake.uuid_range('')).first, null, 'nor nothing');

select is(
  (select id from public.search_intake(pg_temp.claim_of('zoe')) where kind = 'claim'), pg_temp.claim_of('zoe'), 'a claim by its whole id'
);
select is(
  (select id from public.search_intake(upper(left(pg_temp.claim_of('zoe'), 23))) where kind = 'claim'), pg_temp.claim_of('zoe'),
  'by the beginning that a page shows, in either case'
);
select is(
  (select id from public.search_intake(replace(pg_temp.claim_of('zoe'), '-', '')) where kind = 'claim'), pg_temp.claim_of('zoe'),
  'and without its dashes'
);
select is(pg_temp.kinds('request-of-zoe'), 'claim request', 'a claim by its whole request id');
select is(pg_temp.kinds('request-of-zo'), null, 'and not by a part of that, which no index has');
select results_eq(
  $$ select f.ref, f.state from public.claims c cross join lateral public.search_intake(c.slot_id::text) f
     where c.user_id = 'zoe' and f.kind = 'slot' $$,
  $$ values (pg_temp.claim_of('zoe'), 'queued') $$, 'a slot leads to its claim'
);
update public.claims set state = 'released', freed_at = now() where user_id = 'zoë';
select results_eq(
  $$ select f.ref, f.state from public.claims c cross join lateral public.search_intake(left(c.slot_id::text, 18)) f
     where c.user_id = 'zoë' and f.kind = 'slot' $$,
  $$ values (pg_temp.claim_of('zoë'), 'released') $$, 'to the last that ended where none is live'
);

-- As src/tickets/page.ts writes a seat without a label.
create function pg_temp.seat_of(p_user text) returns text language sql as $$
  select upper(substr(right(slot_id::text, 8), 1, 4) || ' ' || right(slot_id::text, 4)) from public.claims where user_id = p_user
$$;
select is(
  (select f.ref from public.search_intake(pg_temp.seat_of('zoe')) f where f.kind = 'slot'), pg_temp.claim_of('zoe'),
  'a seat by the number that its ticket shows'
);
select is(
  (select f.ref from public.claims c cross join lateral public.search_intake(right(c.slot_id::text, 12)) f
   where c.user_id = 'zoe' and f.kind = 'slot'), pg_temp.claim_of('zoe'), 'or by a longer end of its id'
);
select is(
  (select count(*)::int from public.claims c cross join lateral public.search_intake(right(c.slot_id::text, 7)) f
   where c.user_id = 'zoe' and f.kind = 'slot'), 0, 'and not by seven digits, which many end with'
);
update public.inventory_slots i set label = 'Stalls A 12' from public.claims c where c.slot_id = i.id and c.user_id = 'zoe';
select is(
  (select f.ref from public.search_intake('Stalls A 12') f where f.kind = 'slot'), pg_temp.claim_of('zoe'), 'a seat by its label'
);
select is((select f.why from public.search_intake('Stalls') f where f.kind = 'slot'), 'seat', 'or the beginning of that');
select is(pg_temp.kinds('talls A 12'), null, 'and not by its end');

select is(pg_temp.users('zo'), 'zoe zoo zoë', 'users by the beginning of their names, each once');
select is(pg_temp.users('zoe'), 'zoe', 'in the case that they have');
select is(pg_temp.users('Z'), 'Zoe', 'whatever order the database sorts in');
select is(pg_temp.users('zoe_'), null, 'a sign that means something elsewhere means itself');
select is((select count(*)::int from public.search_intake('zo', 2) where kind = 'user'), 2, 'at most so many of a kind');

select is(
  (select string_agg(f.ref, ' ')
   from pgmq.q_intake_dlq d cross join lateral public.search_intake(d.msg_id::text) f where f.kind = 'dead_letter' and f.why = 'number'),
  pg_temp.claim_of('zoo'), 'a dead letter by its number'
);
select is(
  (select f.why from pgmq.q_intake_dlq d cross join lateral public.search_intake(d.message ->> 'original_msg_id') f
   where f.kind = 'dead_letter' and f.why = 'message'),
  'message', 'and by that of the message that it was'
);
select is(
  (select f.ref from pgmq.q_intake_queue q cross join lateral public.search_intake(q.msg_id::text) f
   where q.message ->> 'user_id' = 'zoe' and f.kind = 'message'),
  pg_temp.claim_of('zoe'), 'a message leads to its claim'
);
select is(pg_temp.kinds('SEARCH_P'), 'pool name', 'a pool by a part of its name, in any case');

select public.release_claim_as_operator(pg_temp.claim_of('zoe')::uuid, 'olga', 'test');
select is(
  (select string_agg(distinct state, ' ') from public.search_intake(pg_temp.claim_of('zoe')) where kind = 'audit'), 'claim_release',
  'what operators did to a claim, by the claim'
);
select is(
  (select string_agg(distinct ref, ' ') from public.search_intake('claim ' || pg_temp.claim_of('zoe')) where kind = 'audit'),
  'claim ' || pg_temp.claim_of('zoe'), 'and by what the log calls it'
);
select is(
  (select string_agg(distinct user_id, ' ') from audit.audit_logs a cross join lateral public.search_intake(a.id::text) f
   where f.kind = 'audit' and a.actor = 'olga'),
  'olga', 'an audit row by its number'
);
select audit.add_operator('Petra Search', 'viewer', sha256('x'), 'tests');
select is(pg_temp.kinds('petra s'), 'operator name', 'an operator by a part of the name');

delete from audit.issues;
delete from pgmq.q_intake_dlq;
insert into pgmq.q_intake_dlq (vt, message)
values (now(), '{"pool_id": "gala_2026", "reason": "hook_failed: the hook at 10.0.0.7 cannot be reached"}');
select audit.note_issues(now());
create function pg_temp.issue(p_q text) returns text language sql
as $$ select concat_ws(' ', f.ref, f.user_id, f.state, f.why) from public.search_intake(p_q) f where f.kind = 'issue' $$;
select is(
  pg_temp.issue((select left(i.id::text, 8) from audit.issues i)), 'hook_failed gala_2026 open id', 'an issue by the beginning of its id'
);
select is(pg_temp.issue('Hook_Failed'), 'hook_failed gala_2026 open words', 'by its type, in any case');
select is(pg_temp.issue('gala'), 'hook_failed gala_2026 open words', 'by its lane');
select is(
  pg_temp.issue('the hook at 192.168.1.1 cannot be'), 'hook_failed gala_2026 open words', 'by its error as it was in another failure'
);
select is(pg_temp.issue('reach'), 'hook_failed gala_2026 open words', 'by a word of it');
select is(pg_temp.issue('each'), null, 'and not by the middle of a word');
select is(pg_temp.issue('10'), null, 'nor by a number, which the shape does not keep');
select public.issue_resolve(i.id, 'olga') from audit.issues i;
select is(
  (select string_agg(f.kind || ' ' || f.state, ', ' order by f.kind) from audit.issues i cross join lateral public.search_intake(i.id::text) f),
  'audit issue_resolve, issue resolved', 'a resolved one too, with what operators did to it'
);
select is(pg_temp.kinds('nothing is called like this'), null, 'and nothing where nothing is');

select * from finish();
rollback;
