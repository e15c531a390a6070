-- What happened: reported by servers and workers, or seen by the sampler. One thing is one mark, however many report it.
begin;
select plan(27);

select tests.empty_queues();
delete from audit.samples;
delete from audit.marks;

create function pg_temp.at(p_sec int) returns timestamptz language sql
as $$ select timestamptz '2026-03-01 10:00:00+00' + make_interval(secs => p_sec) $$;
create function pg_temp.mark(p_kind text, p_subject text, p_began int, p_ended int default null) returns jsonb language sql
as $$
  select jsonb_build_array(jsonb_build_object('kind', p_kind, 'subject', p_subject,
    'began_ms', extract(epoch from pg_temp.at(p_began)) * 1000, 'ended_ms', extract(epoch from pg_temp.at(p_ended)) * 1000))
$$;
create function pg_temp.marks() returns text language sql
as $$
  select coalesce(string_agg(concat_ws(' ', m.kind, m.subject, extract(epoch from m.began_at - pg_temp.at(0))::int,
    coalesce(extract(epoch from m.ended_at - pg_temp.at(0))::int::text, '…')), ', ' order by m.began_at, m.kind), '')
  from audit.marks m
$$;

select public.note_marks(pg_temp.mark('outage', 'DB2', 10), pg_temp.at(14));
select is(pg_temp.marks(), 'outage DB2 10 …', 'an outage that goes on is an open mark');
select public.note_marks(pg_temp.mark('outage', 'DB2', 12), pg_temp.at(16));
select is(pg_temp.marks(), 'outage DB2 10 …', 'another server that saw it later adds nothing');
select public.note_marks(pg_temp.mark('outage', 'DB2', 8), pg_temp.at(16));
select is(pg_temp.marks(), 'outage DB2 8 …', 'one that saw it earlier moves its beginning');
select public.note_marks(pg_temp.mark('outage', 'DB2', 10, 70), pg_temp.at(70));
select is(pg_temp.marks(), 'outage DB2 8 70', 'its end is noted');
select public.note_marks(pg_temp.mark('outage', 'DB2', 10, 70), pg_temp.at(72));
select is(pg_temp.marks(), 'outage DB2 8 70', 'a second time as well');
select public.note_marks(pg_temp.mark('outage', 'DB2', 200, 220), pg_temp.at(220));
select is(pg_temp.marks(), 'outage DB2 8 70, outage DB2 200 220', 'a later outage is another mark');
select public.note_marks(pg_temp.mark('breaker', 'hooks.example', 300), pg_temp.at(300));
select public.note_marks('[]', pg_temp.at(421));
select is(
  pg_temp.marks(), 'outage DB2 8 70, outage DB2 200 220, breaker hooks.example 300 300',
  'a mark whose reporter is silent for two minutes ended when it was last seen'
);

-- The cause is kept, replaced by another, and not forgotten by a reporter that does not know it.
delete from audit.marks;
create function pg_temp.because(p_why text) returns jsonb language sql
as $$ select jsonb_build_array(pg_temp.mark('breaker', 'hooks.example', 300) -> 0 || jsonb_build_object('why', p_why)) $$;
create function pg_temp.why() returns text language sql as $$ select string_agg(m.why, ', ') from audit.marks m $$;
select public.note_marks(pg_temp.because('connect ECONNREFUSED'), pg_temp.at(300));
select is(pg_temp.why(), 'connect ECONNREFUSED', 'a mark has its cause');
select public.note_marks(pg_temp.because('certificate has expired'), pg_temp.at(301));
select is(pg_temp.why(), 'certificate has expired', 'another cause stands in its place at once');
select public.note_marks(pg_temp.mark('breaker', 'hooks.example', 300), pg_temp.at(320));
select is(pg_temp.why(), 'certificate has expired', 'a reporter without one leaves it');
select is(
  (select t ->> 'subject' || ': ' || (t ->> 'why') from jsonb_array_elements(audit.troubles()) t),
  'hooks.example: certificate has expired', 'what goes on is told with it'
);
select is(
  (select m ->> 'why' from jsonb_array_elements(audit.marks_between(pg_temp.at(0), pg_temp.at(400), pg_temp.at(330))) m),
  'certificate has expired', 'and what is remembered'
);
select public.note_marks(pg_temp.mark('breaker', 'hooks.example', 300, 330), pg_temp.at(330));
select is(audit.troubles(), '[]', 'what has ended is not told');
select is(pg_temp.why(), 'certificate has expired', 'it keeps its cause');
select public.note_marks(pg_temp.mark('breaker', 'hooks.example', 335), pg_temp.at(335));
select is(
  (select jsonb_agg(t -> 'why') from jsonb_array_elements(audit.troubles()) t), '[null]', 'what goes on again has not the cause of the last time'
);

delete from audit.marks;
select public.note_marks(pg_temp.mark('deploy', '1.0', 0, 0), pg_temp.at(0));
select public.note_marks(pg_temp.mark('deploy', '1.0', 60, 60), pg_temp.at(60));
select is(pg_temp.marks(), 'deploy 1.0 0 60', 'servers of one release that start one after another are one deploy');
select public.note_marks(pg_temp.mark('deploy', '1.0', 3600, 3600), pg_temp.at(3600));
select is(pg_temp.marks(), 'deploy 1.0 0 60, start 1.0 3600 3600', 'the same release again is a start');
select public.note_marks(pg_temp.mark('deploy', '1.1', 3660, 3660), pg_temp.at(3660));
select is(
  pg_temp.marks(), 'deploy 1.0 0 60, start 1.0 3600 3600, deploy 1.1 3660 3660', 'another release is a deploy'
);
select throws_ok($$ select public.note_marks('[{"kind": "party", "subject": "x", "began_ms": 0}]') $$, 'SL001', null, 'other kinds are refused');
select throws_ok($$ select public.note_marks('[{"kind": "outage"}]') $$, 'SL001', null, 'and marks of nothing');
select throws_ok($$ select public.note_marks('{}') $$, 'SL001', null, 'and what is not a list');

delete from audit.marks;
update audit.sampler set timeline = null, started_at = null;
select public.take_sample('[]', pg_temp.at(0));
select is(pg_temp.marks(), '', 'a quiet database has no alert, and its first sample is not a failover');
select pgmq.send('intake_dlq', '{"pool_id": "gig"}');
select public.take_sample('[]', pg_temp.at(10));
select is(pg_temp.marks(), 'alert claims are among the dead letters 10 …', 'a dead letter is an alert');
delete from pgmq.q_intake_dlq;
select public.take_sample('[]', pg_temp.at(20));
select is(pg_temp.marks(), 'alert claims are among the dead letters 10 20', 'until it is gone');
update audit.sampler set started_at = started_at - interval '1 day';
select public.take_sample('[]', pg_temp.at(40));
update audit.sampler set timeline = 'FFFFFFFF';
select public.take_sample('[]', pg_temp.at(60));
select is(
  pg_temp.marks(), 'alert claims are among the dead letters 10 20, restart database 40 40, failover database 60 60',
  'a server that was started again, or promoted, is noted'
);

insert into audit.audit_logs (at, actor, action, subject)
select pg_temp.at(30), 'ann', 'dlq_replay', 'message ' || i from generate_series(1, 3) i;
select is(
  (
    select jsonb_agg(m - 'began_ms' - 'ended_ms') from jsonb_array_elements(
      public.read_samples(pg_temp.at(0), pg_temp.at(100), 60, null, pg_temp.at(100)) -> 'marks') m where m ->> 'kind' = 'action'
  ),
  '[{"kind": "action", "subject": "dlq_replay", "actor": "ann", "times": 3, "target": null}]',
  'what an operator did is read from the audit log'
);
select is(
  jsonb_array_length(public.read_samples(pg_temp.at(25), pg_temp.at(50), 2, null, pg_temp.at(100)) -> 'marks'), 2,
  'marks are those of the time that is asked for'
);

select * from finish();
rollback;
