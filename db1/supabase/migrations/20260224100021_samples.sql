-- SAMPLES: what the console remembers of this database, watched or not. Servers take a sample every two seconds, one for all of
-- them: the two seconds are the key. Nothing here counts a table that may be large, and no table that a claim writes has an
-- index only for samples. DB2 has the same with its own numbers.

-- Every two seconds, for an hour: one look each (audit.look).
create table audit.samples (
  at timestamptz primary key,
  look jsonb not null
);

-- Every minute, for as long as `sluice retention` says: of what is counted up the last, of all else the highest, of workers the
-- lowest. drained counts what has left the queue. parts: audit.write_minutes.
create table audit.minute_samples (
  at timestamptz primary key,
  samples int not null,
  enqueued bigint not null,
  drained bigint not null,
  queue_depth int not null,
  oldest_msg_sec real,
  dlq_depth int not null,
  inbox_waiting int not null,
  inbox_oldest_sec real,
  inbox_dead_letters int not null,
  orders_held int not null,
  past_bound int not null,
  hold_oldest_sec real,
  bridge_workers int not null,
  parts jsonb
);

-- What happened: outages, breakers, failovers, restarts, deploys, alerts and missing secrets. ended_at null: it goes on, as far as was seen at seen_at.
-- why: what its reporter knows of the cause. It is about a target or a secret's name and names no person.
create table audit.marks (
  id bigint generated always as identity primary key,
  kind text not null,
  subject text not null,
  began_at timestamptz not null,
  ended_at timestamptz,
  seen_at timestamptz not null,
  why text,
  constraint mark_is_of_a_known_kind check (kind in ('outage', 'breaker', 'failover', 'restart', 'deploy', 'start', 'alert', 'secret')),
  constraint mark_names_its_subject check (length(subject) between 1 and 200),
  constraint why_is_short check (length(why) <= 200),
  constraint mark_ends_after_it_began check (ended_at >= began_at)
);
create index marks_by_time on audit.marks (began_at);
create unique index one_open_mark_per_subject on audit.marks (kind, subject) where ended_at is null;

-- What the last sample saw, to tell what is new: the server's timeline and start, and the parts as they were last written. When servers
-- look for issues next (public.note_issues).
create table audit.sampler (
  is_only boolean primary key default true,
  timeline text,
  started_at timestamptz,
  parts jsonb not null default '{}',
  issues_due_at timestamptz not null default '-infinity',
  constraint there_is_one_sampler check (is_only)
);
insert into audit.sampler default values;

-- Promise: a mark of which the reporters have said nothing for two minutes ended when it was last seen: they may have died.
-- Second call: does nothing. Locks: those marks.
create function audit.end_silent_marks(p_at timestamptz) returns void
language sql set search_path = '' as $$
  update audit.marks m set ended_at = greatest(m.began_at, m.seen_at)
  where m.ended_at is null and m.seen_at < p_at - interval '2 minutes';
$$;

-- Promise: this is a mark: a new one, or part of one of the same kind and subject that it touches (ten seconds apart still touches; a
-- deploy of the same release ten minutes). A deploy of the release that was deployed last is a start. A cause that is known stays until another
-- is told or the mark, which had ended, goes on again. Second call: the same mark, written again at most every ten seconds unless its cause is another. Locks: the mark.
create function audit.note_mark(
  p_at timestamptz, p_kind text, p_subject text, p_began timestamptz, p_ended timestamptz, p_why text default null
) returns void
language plpgsql set search_path = '' as $$
declare
  v_slack interval := case when p_kind in ('deploy', 'start') then '10 minutes' else '10 seconds' end;
  v_kind text := p_kind;
  v_ended timestamptz := case when p_ended is not null then greatest(p_began, p_ended) end;
  v_mark audit.marks;
begin
  if p_kind = 'deploy' and p_subject = (
    select m.subject from audit.marks m where m.kind in ('deploy', 'start') order by m.began_at desc limit 1
  ) then
    v_kind := 'start';
  end if;
  select m.* into v_mark from audit.marks m
  where m.kind in (v_kind, p_kind) and m.subject = p_subject and m.began_at <= coalesce(v_ended, 'infinity') + v_slack
    and coalesce(m.ended_at, 'infinity') >= p_began - v_slack
  order by m.ended_at is null desc, m.began_at desc limit 1;
  if v_mark.id is null then
    insert into audit.marks (kind, subject, began_at, ended_at, seen_at, why) values (v_kind, p_subject, p_began, v_ended, p_at, p_why);
  elsif (v_mark.ended_at is null) <> (v_ended is null) or v_ended > v_mark.ended_at or p_began < v_mark.began_at
    or v_mark.seen_at < p_at - interval '10 seconds' or p_why <> coalesce(v_mark.why, '') then
    update audit.marks m
    set began_at = least(m.began_at, p_began), ended_at = case when v_ended is not null then greatest(m.ended_at, v_ended) end,
      seen_at = greatest(m.seen_at, p_at),
      why = case when m.ended_at is not null and v_ended is null then p_why else coalesce(p_why, m.why) end
    where m.id = v_mark.id;
  end if;
end
$$;

-- Promise: what a server or worker saw is in the marks: [{kind, subject, began_ms, ended_ms, why}], at most 50; ended_ms null: it goes
-- on. Raises SL001 for what is not that. Second call: as audit.note_mark. Locks: one reporter at a time (advisory, waited for) →
-- the marks. Definer, as all below of schema public: service_role has no rights to the tables.
create function public.note_marks(p_marks jsonb, p_at timestamptz default null) returns void
language plpgsql security definer set search_path = '' as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
begin
  if jsonb_typeof(p_marks) is distinct from 'array' or jsonb_array_length(p_marks) > 50 then
    raise exception 'marks are a list of at most 50' using errcode = 'SL001';
  end if;
  perform pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('sluice marks', 0));
  perform audit.end_silent_marks(v_at);
  perform audit.note_mark(v_at, m.kind, left(m.subject, 200), to_timestamp(m.began_ms / 1000.0), to_timestamp(m.ended_ms / 1000.0), left(m.why, 200))
  from jsonb_to_recordset(p_marks) m (kind text, subject text, began_ms numeric, ended_ms numeric, why text);
exception
  when check_violation or not_null_violation or data_exception then
    raise exception 'a mark has a kind, a subject and a time at which it began' using errcode = 'SL001';
end
$$;

-- Promise: the alerts that p_alerts names are open marks, and all others have ended. Second call: as audit.note_mark. Locks: the marks.
create function audit.note_alerts(p_at timestamptz, p_alerts text[]) returns void
language plpgsql set search_path = '' as $$
begin
  update audit.marks m set ended_at = greatest(m.began_at, p_at), seen_at = greatest(m.seen_at, p_at)
  where m.kind = 'alert' and m.ended_at is null and m.subject <> all (p_alerts);
  perform audit.note_mark(p_at, 'alert', a, p_at, null) from unnest(p_alerts) a;
end
$$;

-- Promise: a server that was promoted since the last sample is a failover in the marks, one that was started again a restart.
-- Second call: does nothing. Locks: the sampler's row, when something is new.
create function audit.note_server(p_at timestamptz) returns void
language plpgsql set search_path = '' as $$
declare
  v_timeline text := left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8);
  v_started timestamptz := pg_catalog.pg_postmaster_start_time();
  v_old audit.sampler;
begin
  select s.* into v_old from audit.sampler s;
  if v_old.timeline is not distinct from v_timeline and v_old.started_at is not distinct from v_started then
    return;
  end if;
  update audit.sampler s set timeline = v_timeline, started_at = v_started;
  if v_old.timeline <> v_timeline then
    perform audit.note_mark(p_at, 'failover', 'database', p_at, p_at);
  elsif v_old.started_at <> v_started then
    perform audit.note_mark(p_at, 'restart', 'database', p_at, p_at);
  end if;
end
$$;

-- Promise: for how long the oldest hold has lasted, of claims and of orders; null where none is held. One look in an index for each
-- pool that has holds. Second call: the same, later. Locks: none.
create function audit.oldest_hold_sec() returns numeric
language sql stable set search_path = ''
set enable_seqscan = off set enable_bitmapscan = off as $$
  select greatest(0, round(extract(epoch from clock_timestamp()) - min(h.since), 1))
  from public.engine_config c
  cross join lateral (
    (
      select extract(epoch from k.claimed_at) as since from public.claims k
      where k.pool_id = c.pool_id and k.hold_until is not null and k.freed_at is null and k.end_as is null
      order by k.hold_until limit 1
    )
    union all
    (
      -- An order has the id of its first claim, which begins with the time.
      select ('x' || left(replace(o.order_id::text, '-', ''), 12))::bit(48)::bigint / 1000.0 from public.orders o
      where o.pool_id = c.pool_id and o.hold_until is not null and o.ended_at is null
      order by o.hold_until limit 1
    )
  ) h
  where c.hold_sec is not null or c.price is not null;
$$;

-- Promise: up to 50 lanes of the queue that are not empty, those that wait longest first: about how many messages, and for how long
-- the first has waited. Second call: the same, later. Locks: none.
create function audit.lane_levels() returns jsonb
language sql stable set search_path = ''
set enable_seqscan = off set enable_bitmapscan = off as $$
  with lane as (
    select l.lane, round(extract(epoch from clock_timestamp() - f.enqueued_at), 1) as oldest_sec
    from intake.lanes() l (lane)
    cross join lateral (
      select q.enqueued_at from pgmq.q_intake_queue q where q.msg_id >= l.lane::bigint << 40 order by q.msg_id limit 1
    ) f
    order by f.enqueued_at limit 50
  ),
  waiting as (
    select coalesce(c.lane, 0) as lane, round(sum(m.messages)) as messages
    from intake.messages_by_pool() m
    left join public.engine_config c on c.pool_id = m.pool_id
    group by 1
  )
  select coalesce(jsonb_agg(jsonb_build_object('lane', l.lane, 'messages', coalesce(w.messages, 0), 'oldest_sec', greatest(0, l.oldest_sec))), '[]')
  from lane l left join waiting w on w.lane = l.lane;
$$;

-- Promise: what goes on and waits for a person: targets that workers leave alone, and secrets that a server misses, the oldest first, at most 20.
-- Second call: the same, later. Locks: none.
create function audit.troubles() returns jsonb
language sql stable set search_path = '' as $$
  select coalesce(jsonb_agg(jsonb_build_object('kind', t.kind, 'subject', t.subject, 'why', t.why,
    'began_ms', round(extract(epoch from t.began_at) * 1000)) order by t.began_at, t.subject), '[]')
  from (
    select m.* from audit.marks m
    where m.kind in ('breaker', 'secret') and m.ended_at is null order by m.began_at, m.subject limit 20
  ) t;
$$;

-- Promise: one look at this database, as a sample keeps it: public.live_sample with lanes, hold_oldest_sec, troubles and issues.
-- Second call: the same, later. Locks: those of live_sample. In plpgsql, because a later file makes audit.open_issues.
create function audit.look() returns jsonb
language plpgsql set search_path = '' as $$
begin
  return public.live_sample() - 'announced_pools'
    || jsonb_build_object('lanes', audit.lane_levels(), 'hold_oldest_sec', audit.oldest_hold_sec(), 'troubles', audit.troubles(),
      'issues', audit.open_issues());
end
$$;

-- Promise: the numbers of a look by what they are of: a pool [available, reserved, consumed], a lane [messages, oldest_sec].
-- Second call: the same. Locks: none.
create function audit.parts_of(p_look jsonb) returns jsonb
language sql immutable set search_path = '' as $$
  select coalesce(jsonb_object_agg(p.name, p.numbers), '{}')
  from (
    select 'pool ' || l.pool_id, jsonb_build_array(l.available, l.reserved, l.consumed)
    from jsonb_to_recordset(p_look -> 'pools') l (pool_id text, available bigint, reserved bigint, consumed bigint)
    union all
    select 'lane ' || l.lane, jsonb_build_array(l.messages, l.oldest_sec)
    from jsonb_to_recordset(p_look -> 'lanes') l (lane int, messages bigint, oldest_sec numeric)
  ) p (name, numbers);
$$;

-- Promise: what an operator should be told of in this look. Second call: the same. Locks: none.
create function audit.alerts_in(p_look jsonb) returns text[]
language sql immutable set search_path = '' as $$
  select array_remove(array[
    case when (p_look ->> 'oldest_msg_sec')::numeric > 60 then 'a message waits for more than a minute' end,
    case when (p_look ->> 'dlq_depth')::bigint > 0 then 'claims are among the dead letters' end,
    case when (p_look #>> '{inbox,oldest_sec}')::numeric > 60 then 'a delivery waits in the inbox for more than a minute' end,
    case when (p_look #>> '{inbox,dead_letters}')::bigint > 0 then 'the ledger refused deliveries of the inbox' end,
    case when (p_look #>> '{orders,past_bound}')::bigint > 0 then 'orders hold seats past their bound' end,
    case when (p_look ->> 'queue_depth')::bigint > 0 and (p_look ->> 'bridge_workers')::int = 0
      then 'messages wait and no bridge worker is connected' end
  ], null);
$$;

-- Promise: the numbers between two times, a row for each step that has some: of the samples of two seconds, or of minutes.
-- Second call: the same, and what is new. Locks: none.
create function audit.numbers(p_from timestamptz, p_to timestamptz, p_step interval, p_is_fine boolean)
returns setof audit.minute_samples
language sql stable set search_path = '' as $$
  with given as (
    select m.* from audit.minute_samples m where not p_is_fine and m.at >= p_from and m.at < p_to
    union all
    select s.at, 1, (s.look ->> 'enqueued')::bigint, (s.look ->> 'enqueued')::bigint - (s.look ->> 'queue_depth')::bigint,
      (s.look ->> 'queue_depth')::int, (s.look ->> 'oldest_msg_sec')::real, (s.look ->> 'dlq_depth')::int,
      (s.look #>> '{inbox,waiting}')::int, (s.look #>> '{inbox,oldest_sec}')::real, (s.look #>> '{inbox,dead_letters}')::int,
      (s.look #>> '{orders,held}')::int, (s.look #>> '{orders,past_bound}')::int, (s.look ->> 'hold_oldest_sec')::real,
      (s.look ->> 'bridge_workers')::int, null
    from audit.samples s where p_is_fine and s.at >= p_from and s.at < p_to
  )
  select date_bin(p_step, g.at, 'epoch'), sum(g.samples)::int, max(g.enqueued), max(g.drained), max(g.queue_depth),
    max(g.oldest_msg_sec), max(g.dlq_depth), max(g.inbox_waiting), max(g.inbox_oldest_sec), max(g.inbox_dead_letters),
    max(g.orders_held), max(g.past_bound), max(g.hold_oldest_sec), min(g.bridge_workers), null::jsonb
  from given g
  group by 1;
$$;

-- Promise: the minutes that are over and not written yet are written, from the samples that stand. Of parts (pools, lanes, endpoints)
-- a minute has those that changed, null where one is gone, and at each full hour all of them. Second call: does nothing.
-- Locks: the sampler's row.
create function audit.write_minutes(p_at timestamptz) returns void
language plpgsql set search_path = '' as $$
declare
  v_from timestamptz := coalesce(
    (select max(m.at) + interval '1 minute' from audit.minute_samples m),
    (select date_bin('1 minute', min(s.at), 'epoch') from audit.samples s)
  );
  v_to timestamptz := date_bin('1 minute', p_at, 'epoch');
  v_known jsonb;
  v_minute audit.minute_samples;
  v_parts jsonb;
begin
  if v_from is null or v_from >= v_to or not exists (select from audit.samples s where s.at >= v_from and s.at < v_to) then
    return;
  end if;
  select s.parts into v_known from audit.sampler s for update;
  for v_minute in select n.* from audit.numbers(v_from, v_to, interval '1 minute', true) n order by n.at loop
    v_parts := (
      select audit.parts_of(s.look) from audit.samples s
      where s.at >= v_minute.at and s.at < v_minute.at + interval '1 minute' order by s.at desc limit 1
    );
    v_minute.parts := case when date_bin('1 hour', v_minute.at, 'epoch') = v_minute.at then v_parts else audit.changed_parts(v_known, v_parts) end;
    v_known := v_parts;
    insert into audit.minute_samples values (v_minute.*) on conflict do nothing;
  end loop;
  update audit.sampler s set parts = v_known;
  perform audit.end_silent_marks(p_at);
end
$$;

-- Promise: what is in p_new and is not the same in p_old, and null for what p_new has no longer. Second call: the same. Locks: none.
create function audit.changed_parts(p_old jsonb, p_new jsonb) returns jsonb
language sql immutable set search_path = '' as $$
  select nullif(coalesce(jsonb_object_agg(k.key, p_new -> k.key), '{}'), '{}')
  from (select jsonb_object_keys(p_old) as key union select jsonb_object_keys(p_new)) k
  where (p_new -> k.key) is distinct from (p_old -> k.key);
$$;

-- Promise: the sample of these two seconds, taken now or by another server before, as one look at the database with sampled_ms; null
-- where another takes the first one now. p_marks is what the caller saw elsewhere (public.note_marks). Of samples that are an hour
-- old and are in a minute, up to 20 are gone. p_at: another clock than the database's. Second call: the same sample.
-- Locks: those of note_marks, where there are marks → one sampler at a time (advisory, not waited for) → those of the look.
create function public.take_sample(p_marks jsonb default '[]', p_at timestamptz default null) returns jsonb
language plpgsql security definer set search_path = '' as $$
declare
  c_keep constant interval := '1 hour';
  v_at timestamptz := date_bin('2 seconds', coalesce(p_at, clock_timestamp()), 'epoch');
  v_look jsonb;
begin
  -- A sample is not worth waiting for a disk or a standby.
  perform pg_catalog.set_config('synchronous_commit', 'off', true);
  if p_marks <> '[]' then
    perform public.note_marks(p_marks, v_at);
  end if;
  select s.look into v_look from audit.samples s where s.at = v_at;
  if found then
    return v_look;
  elsif not pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended('sluice sampler', 0)) then
    return (select s.look from audit.samples s where s.at < v_at order by s.at desc limit 1);
  end if;
  v_look := audit.look() || jsonb_build_object('sampled_ms', round(extract(epoch from v_at) * 1000));
  insert into audit.samples (at, look) values (v_at, v_look) on conflict do nothing;
  if not found then
    return (select s.look from audit.samples s where s.at = v_at);
  end if;
  perform audit.note_server(v_at);
  perform audit.note_alerts(v_at, audit.alerts_in(v_look));
  perform audit.write_minutes(v_at);
  delete from audit.samples s where s.at = any (array(
    select o.at from audit.samples o where o.at < date_bin('1 minute', v_at - c_keep, 'epoch') order by o.at limit 20));
  return v_look;
end
$$;

-- Promise: what operators did between two times, as marks: those of one action and operator within one step are one, with their number.
-- At most 200, the newest of each action. Second call: the same. Locks: none. By (action, at): the log may be long.
create function audit.action_marks(p_from timestamptz, p_to timestamptz, p_step interval) returns jsonb
language sql stable set search_path = ''
set enable_seqscan = off as $$
  with recursive known as (
    (select a.action from audit.audit_logs a order by a.action limit 1)
    union all
    select (select a.action from audit.audit_logs a where a.action > k.action order by a.action limit 1)
    from known k where k.action is not null
  ),
  done as (
    select k.action, r.actor, min(r.at) as began, max(r.at) as ended, count(*) as times, max(r.subject) as subject
    from known k
    cross join lateral (
      select a.actor, a.at, a.subject from audit.audit_logs a
      where a.action = k.action and a.at >= p_from and a.at < p_to order by a.at desc limit 1000
    ) r
    where k.action is not null
    group by k.action, r.actor, date_bin(p_step, r.at, 'epoch')
    order by min(r.at) desc limit 200
  )
  select coalesce(jsonb_agg(jsonb_build_object('kind', 'action', 'subject', d.action, 'actor', d.actor, 'times', d.times,
    'target', case when d.times = 1 then d.subject end, 'began_ms', round(extract(epoch from d.began) * 1000),
    'ended_ms', round(extract(epoch from d.ended) * 1000))), '[]')
  from done d;
$$;

-- Promise: the marks that touch the time between the two, at most 500, the newest; one that goes on has no ended_ms, one of which
-- its reporters have said nothing for two minutes ended then. Second call: the same, later. Locks: none.
create function audit.marks_between(p_from timestamptz, p_to timestamptz, p_now timestamptz) returns jsonb
language sql stable set search_path = '' as $$
  select coalesce(jsonb_agg(jsonb_build_object('kind', m.kind, 'subject', m.subject,
    'began_ms', round(extract(epoch from m.began_at) * 1000), 'ended_ms', round(extract(epoch from m.ended) * 1000), 'why', m.why)), '[]')
  from (
    select k.kind, k.subject, k.began_at, k.why, case when k.ended_at is null and k.seen_at < p_now - interval '2 minutes'
      then k.seen_at else k.ended_at end as ended
    from audit.marks k
    where k.began_at < p_to and coalesce(k.ended_at, 'infinity') >= p_from
    order by k.began_at desc limit 500
  ) m;
$$;

-- Promise: a part (such as "pool gig") over time, [[ms, its numbers]]: of each step the last, from the sample or minute before p_from
-- on, back to a full hour. Minutes have what changed: a step without a row is as the one before. Second call: the same. Locks: none.
create function audit.part_rows(p_part text, p_from timestamptz, p_to timestamptz, p_step interval) returns jsonb
language sql stable set search_path = '' as $$
  with given as (
    select s.at, audit.parts_of(s.look) -> p_part as numbers from audit.samples s
    where p_step < interval '1 minute' and s.at >= p_from and s.at < p_to
    union all
    select m.at, m.parts -> p_part from audit.minute_samples m
    where p_step >= interval '1 minute' and m.at >= date_bin('1 hour', p_from, 'epoch') and m.at < p_to and m.parts ? p_part
  ),
  last as (
    select distinct on (date_bin(p_step, g.at, 'epoch')) date_bin(p_step, g.at, 'epoch') as at, g.numbers
    from given g order by date_bin(p_step, g.at, 'epoch'), g.at desc
  )
  select coalesce(jsonb_agg(jsonb_build_array(round(extract(epoch from l.at) * 1000), l.numbers) order by l.at), '[]') from last l;
$$;

-- Promise: what is remembered of the time from p_from to p_to: a row for each step, the marks, the names of all parts, and the rows of
-- p_part. Steps below a minute come from audit.samples, which go back an hour; longer ones from audit.minute_samples. Raises SL001
-- if the time is not 1 to 2000 steps of 2 seconds to a day. Second call: the same, and what is new. Locks: none.
create function public.read_samples(
  p_from timestamptz, p_to timestamptz, p_step_sec int, p_part text default null, p_now timestamptz default null
) returns jsonb
language plpgsql stable security definer set search_path = '' as $$
declare
  c_most constant int := 2000;
  v_step interval := make_interval(secs => p_step_sec);
begin
  if (p_step_sec between 2 and 86400 and p_from < p_to and p_to - p_from <= v_step * c_most) is not true then
    raise exception 'from is before to, and at most % steps', c_most using errcode = 'SL001';
  end if;
  return jsonb_build_object(
    'rows', (
      select coalesce(jsonb_agg(
        to_jsonb(n) - 'parts' || jsonb_build_object('at', round(extract(epoch from n.at) * 1000)) order by n.at), '[]')
      from audit.numbers(p_from, p_to, v_step, v_step < interval '1 minute') n
    ),
    'marks', audit.marks_between(p_from, p_to, coalesce(p_now, clock_timestamp())) || audit.action_marks(p_from, p_to, v_step),
    'parts', (
      select coalesce(jsonb_agg(distinct k), '[]') from (
        select jsonb_object_keys(s.parts) from audit.sampler s
        union all
        select jsonb_object_keys(audit.parts_of(l.look)) from (select s.look from audit.samples s order by s.at desc limit 1) l
      ) p (k)
    ),
    'part', case when p_part is not null then audit.part_rows(p_part, p_from, p_to, v_step) end
  );
end
$$;

-- Promise: how far vacuum is behind here. tables: {name, live_rows, dead_rows, vacuum_age_sec}, from the statistics; vacuum_age_sec
-- is null before the first vacuum. snapshot: the session, standby, prepared transaction or replication slot that has kept vacuum from
-- removing rows for the most transactions {kind, pid, name, state, age_xacts, age_sec}; null where there is none. age_sec is null
-- where it is not known: Postgres tells age_xacts of every session, but state and time only to its role and to pg_read_all_stats, and
-- it keeps no time of standbys and active slots. role: the owner of this function, as whom it looks.
-- Second call: the same, later. Locks: none. Definer: the owner may see sessions that service_role may not.
create function public.vacuum_levels() returns jsonb
language sql stable security definer set search_path = '' as $$
  with holder as (
    select case when s.datname is null then 'standby' else 'session' end as kind, s.pid, s.application_name as name, s.state,
      s.xact_start as since, greatest(age(s.backend_xid), age(s.backend_xmin)) as age_xacts
    from pg_catalog.pg_stat_activity s
    -- A snapshot of another database holds nothing here, nor does that of a vacuum.
    where s.pid <> pg_catalog.pg_backend_pid() and coalesce(s.datname, current_database()) = current_database()
      and not exists (select from pg_catalog.pg_stat_progress_vacuum v where v.pid = s.pid)
    union all
    select 'prepared transaction', null, p.gid, null, p.prepared, age(p.transaction)
    from pg_catalog.pg_prepared_xacts p where p.database = current_database()
    union all
    -- inactive_since: from Postgres 17 on.
    select 'replication slot', r.active_pid, r.slot_name, case when r.active then 'active' else 'inactive' end,
      (to_jsonb(r) ->> 'inactive_since')::timestamptz, age(r.xmin)
    from pg_catalog.pg_replication_slots r
  )
  select jsonb_build_object(
    'role', current_user,
    'tables', (
      select jsonb_agg(jsonb_build_object(
        'name', s.schemaname || '.' || s.relname, 'live_rows', s.n_live_tup, 'dead_rows', s.n_dead_tup,
        'vacuum_age_sec', round(extract(epoch from clock_timestamp() - greatest(s.last_vacuum, s.last_autovacuum)))
      ) order by s.schemaname, s.relname)
      from pg_catalog.pg_stat_user_tables s
      where s.relid in (
        'pgmq.q_intake_queue'::regclass, 'pgmq.q_event_inbox'::regclass, 'public.claims'::regclass, 'public.inventory_slots'::regclass
      )
    ),
    'snapshot', (
      select to_jsonb(h) - 'since' || jsonb_build_object(
        'age_sec', round(extract(epoch from clock_timestamp() - h.since), 1))
      from holder h where h.age_xacts is not null order by h.age_xacts desc, h.since nulls last limit 1
    )
  );
$$;
