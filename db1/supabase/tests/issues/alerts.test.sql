-- What an address is told: each opening of an issue and each alert of the sampler once, by one server at a time, and again after a failure.
begin;
select plan(15);

select tests.empty_queues();
delete from pgmq.q_event_inbox_dlq;
delete from audit.issues;
delete from audit.marks;
delete from audit.alerts;
update audit.sampler set issues_due_at = '-infinity';

create function pg_temp.taken(p_limit int default 10) returns text language sql
as $$ select coalesce(string_agg(concat_ws(' ', t.what, t.subject), ', ' order by t.id), 'none') from public.take_alerts(p_limit, 60) t $$;

select is(pg_temp.taken(), 'none', 'where all is well there is nothing to tell');

insert into pgmq.q_intake_dlq (vt, message) values (now(), '{"pool_id": "gig", "reason": "malformed: 7"}');
select is(public.note_issues(), true, 'a server looks for issues');
select is(public.note_issues(), false, 'the next one need not, so soon');
select is(pg_temp.taken(), 'issue_opened claim gig malformed', 'a new issue is told');
select is(pg_temp.taken(), 'none', 'by one server at a time');
select is(public.finish_alert((select id from audit.alerts), gen_random_uuid(), true), false, 'who has no lease finishes nothing');
select is(public.finish_alert(a.id, a.token, false), true, 'one that could not be told') from audit.alerts a;
select is(pg_temp.taken(), 'none', 'waits');
update audit.alerts set next_attempt_at = now();
select results_eq(
  $$ select t.issue ->> 'error', t.issue ? 'example_error' from public.take_alerts(10, 60) t $$, $$ values ('#', false) $$,
  'with the shape of the error, and without the words of the example, which may name a user'
);
update audit.alerts set next_attempt_at = now();
select is(pg_temp.taken(), 'issue_opened claim gig malformed', 'and is told again');
select public.finish_alert(a.id, a.token, true) from audit.alerts a;
update audit.alerts set next_attempt_at = now();
select is(pg_temp.taken(), 'none', 'and never after it was');

select public.issue_resolve(i.id, 'ann') from audit.issues i;
insert into pgmq.q_intake_dlq (vt, message, enqueued_at) values (now(), '{"pool_id": "gig", "reason": "malformed: 8"}', clock_timestamp());
select audit.note_issues(clock_timestamp());
select is(pg_temp.taken(), 'issue_reopened claim gig malformed', 'an issue that comes back is told again');

select audit.note_alerts(now(), '{orders hold seats past their bound,claims are among the dead letters}');
select public.note_marks(jsonb_build_array(jsonb_build_object('kind', 'secret', 'subject', 'endpoint stripe', 'began_ms', extract(epoch from now()) * 1000)));
select is(
  pg_temp.taken(), 'alert orders hold seats past their bound, secret_missing endpoint stripe',
  'so are alerts of the sampler and missing secrets; of dead letters the issues tell'
);
select is(pg_temp.taken(), 'none', 'each once');
insert into audit.marks (kind, subject, began_at, seen_at) values ('alert', 'an old one', now() - interval '2 hours', now());
select is(pg_temp.taken(), 'none', 'what began an hour ago is not news');

select * from finish();
rollback;
