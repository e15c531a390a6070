-- ISSUES: failures that are alike are one issue: of one kind, lane, type and shape of the error. Here these are dead letters of claims, by
-- their pool, and deliveries of the inbox that the ledger refused, by their endpoint or call site. Servers look for them every few
-- seconds, one for all. DB2 has the same of its own.

-- Promise: the error without what differs from one failure to the next: what is quoted is "…"; an address of the web or of mail, and
-- a word with a digit in it (an id, a number, a time), is #. At most 200 characters, so that it can be given as a filter.
-- Second call: the same. Locks: none.
create function audit.error_shape(p_error text) returns text
language sql immutable parallel safe set search_path = '' as $$
  select left(regexp_replace(
    regexp_replace(
      regexp_replace(
        regexp_replace(p_error, '"[^"]*"|`[^`]*`|(?<!\w)''[^'']*''(?!\w)', '"…"', 'g'),
        '\w+://[^\s"]+|[\w.+-]+@[\w-]+(\.[\w-]+)+', '#', 'g'
      ),
      '[\w-]*\d[\w-]*', '#', 'g'
    ),
    '#([.:/]+#)+', '#', 'g'
  ), 200);
$$;

-- One row for each kind of failure that was seen. failures and dead_letters are how many there are now, as of the last look;
-- example_id is the newest of them, and example_error what it says, kept when it has gone round again. It is open until it is resolved:
-- by an operator (resolved_by), or because nothing is left of it. One that comes back is opened again (openings).
create table audit.issues (
  id uuid primary key,
  kind text not null,
  lane text,
  type text not null,
  error text,
  failures bigint not null,
  dead_letters bigint not null,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  example_id text not null,
  example_error text,
  opened_at timestamptz not null,
  openings int not null default 1,
  resolved_at timestamptz,
  resolved_by text,
  constraint issue_was_opened check (openings > 0),
  constraint resolved_by_someone_means_resolved check (resolved_by is null or resolved_at is not null)
);
-- Servers ask for those that are open with every sample.
create index issues_open on audit.issues (last_seen_at desc, id) where resolved_at is null;

-- What the owner's address was told, or is to be told: an opening of an issue, or a mark. token names the server that tells it,
-- until next_attempt_at.
create table audit.alerts (
  id bigint generated always as identity primary key,
  issue_id uuid references audit.issues on delete cascade,
  opening int,
  mark_id bigint references audit.marks on delete cascade,
  attempts int not null default 0,
  next_attempt_at timestamptz not null,
  token uuid,
  told_at timestamptz,
  constraint alert_is_of_an_issue_or_a_mark check ((issue_id is null) = (opening is null) and (issue_id is null) <> (mark_id is null)),
  constraint one_alert_per_opening unique (issue_id, opening),
  constraint one_alert_per_mark unique (mark_id)
);
create index alerts_to_tell on audit.alerts (next_attempt_at) where told_at is null;

-- Promise: what has failed and has not ended: its kind, lane, type and error, when it was seen first and last, and what it is called by (ref).
-- Second call: the same. Locks: none.
create function audit.failures()
returns table (kind text, lane text, type text, error text, is_dead boolean, first_at timestamptz, seen_at timestamptz, ref text)
language sql stable set search_path = '' as $$
  select 'claim', d.message ->> 'pool_id', coalesce(substring(w.why from '^[a-z_]+(?=:|$)|^SL[0-9]{3}'), 'dead_letter'),
    nullif(regexp_replace(w.why, '^[a-z_]+(: |$)', ''), ''), true, d.enqueued_at, d.enqueued_at, d.msg_id::text
  from pgmq.q_intake_dlq d
  cross join lateral (select coalesce(d.message ->> 'reason', 'max_retries')) w (why)
  union all
  select 'delivery', d.message ->> 'door', coalesce(d.message ->> 'kind', 'delivery'), coalesce(d.message ->> 'reason', d.message ->> 'last_error'),
    true, d.enqueued_at, d.enqueued_at, d.msg_id::text
  from pgmq.q_event_inbox_dlq d;
$$;

-- Promise: the error of a failure as it was, null where that is gone. Second call: the same. Locks: none.
create function audit.error_of(p_kind text, p_ref text) returns text
language sql stable set search_path = '' as $$
  select case p_kind
    when 'claim' then (select coalesce(d.message ->> 'reason', 'max_retries') from pgmq.q_intake_dlq d where d.msg_id = p_ref::bigint)
    else (select coalesce(d.message ->> 'reason', d.message ->> 'last_error') from pgmq.q_event_inbox_dlq d where d.msg_id = p_ref::bigint)
  end;
$$;

-- Promise: these failures of one kind go round again, as public.replay_dead_letters and public.inbox_replay answer; p_dry_run changes
-- nothing. Second call: not_found or unknown. Locks: those of the two.
create function audit.replay_failures(p_kind text, p_refs text[], p_actor text, p_reason text, p_dry_run boolean)
returns table (ref text, outcome text)
language plpgsql set search_path = '' as $$
begin
  if p_kind = 'claim' then
    return query select r.msg_id::text, r.outcome from public.replay_dead_letters(p_refs::bigint[], p_actor, p_reason, p_dry_run) r;
  elsif p_dry_run then
    return query select r, 'would_replay' from unnest(p_refs) r;
  else
    return query select r.msg_id::text, r.outcome from public.inbox_replay(p_refs::bigint[], p_actor, p_reason) r;
  end if;
end
$$;

-- Promise: what failures of this kind, lane, type and shape are called. Second call: the same. Locks: none.
create function audit.issue_id(p_kind text, p_lane text, p_type text, p_shape text) returns uuid
language sql immutable parallel safe set search_path = '' as $$
  select md5(jsonb_build_array(p_kind, p_lane, p_type, p_shape)::text)::uuid;
$$;

-- Promise: audit.issues says what there is at p_at. An issue of which nothing is left is resolved. One that is resolved, and has a newer
-- failure or more of them, is opened again; one that had ended by itself, ten minutes before or less, goes on as if it had not.
-- Second call: changes nothing. Locks: one look at a time (advisory, waited for) → the issues.
create function audit.note_issues(p_at timestamptz) returns void
language plpgsql set search_path = '' as $$
declare
  c_same_within constant interval := '10 minutes';
begin
  perform pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('sluice issues', 0));
  -- By their raw errors first: a shape is four regular expressions, and a million dead letters share a few errors.
  with alike as materialized (
    select f.kind, f.lane, f.type, f.error, count(*) as failures, count(*) filter (where f.is_dead) as dead_letters,
      min(f.first_at) as first_at, max(f.seen_at) as seen_at,
      -- The newest, and of these the last: the greatest of arrays needs no sort.
      (max(array[to_char(f.seen_at at time zone 'UTC', 'YYYYMMDDHH24MISSUS'), lpad(length(f.ref)::text, 4, '0'), f.ref] collate "C"))[3]
        as example_id
    from audit.failures() f group by f.kind, f.lane, f.type, f.error
  ),
  shaped as materialized (
    select a.*, audit.error_shape(a.error) as shape from alike a
  ),
  found as materialized (
    select audit.issue_id(f.kind, f.lane, f.type, f.shape) as id, f.kind, f.lane, f.type, f.shape, sum(f.failures)::bigint as failures,
      sum(f.dead_letters)::bigint as dead_letters, min(f.first_at) as first_at, max(f.seen_at) as seen_at,
      (array_agg(f.example_id order by f.seen_at desc, length(f.example_id) desc, f.example_id desc))[1] as example_id
    from shaped f group by f.kind, f.lane, f.type, f.shape
  ),
  gone as (
    update audit.issues i set failures = 0, dead_letters = 0, resolved_at = coalesce(i.resolved_at, p_at)
    where (i.failures > 0 or i.resolved_at is null) and i.id not in (select f.id from found f)
  ),
  again as (
    select f.id, i.resolved_by is not null or f.seen_at > i.resolved_at + c_same_within as is_opening
    from found f join audit.issues i on i.id = f.id
    where i.resolved_at is not null and (f.seen_at > i.resolved_at or f.failures > i.failures)
  )
  insert into audit.issues as i (id, kind, lane, type, error, failures, dead_letters, first_seen_at, last_seen_at, example_id,
    example_error, opened_at)
  select f.id, f.kind, f.lane, f.type, f.shape, f.failures, f.dead_letters, f.first_at, f.seen_at, f.example_id,
    audit.error_of(f.kind, f.example_id), p_at
  from found f
  on conflict (id) do update
  set failures = excluded.failures, dead_letters = excluded.dead_letters, example_id = excluded.example_id,
    example_error = excluded.example_error,
    first_seen_at = least(i.first_seen_at, excluded.first_seen_at), last_seen_at = greatest(i.last_seen_at, excluded.last_seen_at),
    resolved_at = case when i.id not in (select a.id from again a) then i.resolved_at end,
    resolved_by = case when i.id not in (select a.id from again a) then i.resolved_by end,
    openings = i.openings + case when i.id in (select a.id from again a where a.is_opening) then 1 else 0 end,
    opened_at = case when i.id in (select a.id from again a where a.is_opening) then p_at else i.opened_at end
  where (i.failures, i.dead_letters, i.example_id) is distinct from (excluded.failures, excluded.dead_letters, excluded.example_id)
    or excluded.last_seen_at > i.last_seen_at;
end
$$;

-- Promise: how many issues are open as of the last look, counted up to 1000, and the five of them that were seen last, for a sample. Without their errors: these may
-- name a user, and no erasure reaches a sample. Second call: the same, later. Locks: none.
create function audit.open_issues() returns jsonb
language sql stable set search_path = '' as $$
  select jsonb_build_object('open', count(*), 'newest', coalesce(jsonb_agg(
    jsonb_build_object('id', i.id, 'kind', i.kind, 'lane', i.lane, 'type', i.type, 'failures', i.failures,
      'seen_ms', round(extract(epoch from i.last_seen_at) * 1000)) order by i.n) filter (where i.n <= 5), '[]'))
  from (
    select o.*, row_number() over (order by o.last_seen_at desc, o.id) as n from audit.issues o where o.resolved_at is null
    order by o.last_seen_at desc, o.id limit 1000
  ) i;
$$;

-- Promise: issues are noted, unless another server did so in the last five seconds or does now: true where it was this call. A look
-- that took long is not repeated for a hundred times as long, so that it costs one part in a hundred at most: nor is one that the
-- server canceled, which leaves the issues as they were, and a warning.
-- Second call: false. Locks: one look at a time (advisory, not waited for) → the issues → the sampler's row.
-- Definer, as all below: service_role has no rights to the tables.
create function public.note_issues() returns boolean
language plpgsql security definer set search_path = '' as $$
declare
  c_every constant interval := '5 seconds';
  v_began timestamptz := clock_timestamp();
  v_is_noted boolean := true;
begin
  if (select s.issues_due_at > v_began from audit.sampler s)
    or not pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended('sluice issues', 0)) then
    return false;
  end if;
  begin
    perform audit.note_issues(v_began);
  exception when query_canceled then
    raise warning 'issues are not noted: %', sqlerrm;
    v_is_noted := false;
  end;
  update audit.sampler s set issues_due_at = clock_timestamp() + greatest(c_every, 100 * (clock_timestamp() - v_began));
  return v_is_noted;
end
$$;

-- Promise: up to p_limit issues as of now, filtered by what is not null (a p_type that ends in * is a prefix; p_state open means
-- reopened too): those that are open first, of those the ones seen last. example_error is the error of the example, as it
-- was when it was seen last. Second call: the same, and what is new. Locks: those of audit.note_issues.
create function public.issue_list(
  p_id uuid default null,
  p_kind text default null,
  p_lane text default null,
  p_type text default null,
  p_state text default null,
  p_limit int default 100
)
returns table (
  id uuid, kind text, lane text, type text, error text, state text, failures bigint, dead_letters bigint, first_seen_at timestamptz,
  last_seen_at timestamptz, example_id text, example_error text, opened_at timestamptz, openings int, resolved_at timestamptz,
  resolved_by text
)
language plpgsql security definer set search_path = '' as $$
begin
  perform audit.note_issues(clock_timestamp());
  return query
  select i.id, i.kind, i.lane, i.type, i.error,
    case when i.resolved_at is not null then 'resolved' when i.openings > 1 then 'reopened' else 'open' end,
    i.failures, i.dead_letters, i.first_seen_at, i.last_seen_at, i.example_id, i.example_error, i.opened_at,
    i.openings, i.resolved_at, i.resolved_by
  from audit.issues i
  where (p_id is null or i.id = p_id) and (p_kind is null or i.kind = p_kind) and (p_lane is null or i.lane = p_lane)
    and (p_type is null or i.type = p_type or right(p_type, 1) = '*' and starts_with(i.type, left(p_type, -1)))
    and (p_state is null or (p_state = 'resolved') = (i.resolved_at is not null))
  order by i.resolved_at is not null, i.last_seen_at desc, i.id
  limit p_limit;
end
$$;

-- Promise: one row in the audit log about an issue, without its error, which may name a user. Second call: a second row. Locks: none.
create function audit.write_issue(p_issue audit.issues, p_action text, p_actor text, p_reason text, p_details jsonb) returns void
language sql set search_path = '' as $$
  insert into audit.audit_logs (actor, action, subject, reason, details)
  values (p_actor, p_action, 'issue ' || p_issue.id, p_reason,
    jsonb_build_object('kind', p_issue.kind, 'lane', p_issue.lane, 'type', p_issue.type) || p_details);
$$;

-- Promise: the oldest p_limit failures of the issue go round again, each as audit.replay_failures answers. Where that was all of them and
-- none is left, the issue is resolved. One audit row for the issue, beside those of its failures. p_dry_run is the plan: it changes
-- nothing. No row for an unknown issue, nor where nothing is left of it. Second call: no row. Locks: the issue → those of audit.replay_failures.
create function public.issue_replay(
  p_id uuid, p_actor text, p_reason text default null, p_dry_run boolean default false, p_limit int default 1000
)
returns table (ref text, outcome text)
language plpgsql security definer set search_path = '' as $$
declare
  v_issue audit.issues;
  v_refs text[];
  v_answers jsonb;
begin
  select i.* into v_issue from audit.issues i where i.id = p_id for update;
  if v_issue.id is null then
    return;
  end if;
  v_refs := array(
    select f.ref from audit.failures() f
    where f.kind = v_issue.kind and f.type = v_issue.type
      and audit.issue_id(f.kind, f.lane, f.type, audit.error_shape(f.error)) = p_id
    order by f.seen_at, length(f.ref), f.ref limit p_limit
  );
  if v_refs = '{}' then
    return;
  end if;
  v_answers := (
    select coalesce(jsonb_agg(jsonb_build_object('ref', r.ref, 'outcome', r.outcome)), '[]')
    from audit.replay_failures(v_issue.kind, v_refs, p_actor, p_reason, p_dry_run) r
  );
  if not p_dry_run then
    perform audit.write_issue(v_issue, 'issue_replay', p_actor, p_reason, jsonb_build_object('outcomes', (
      select coalesce(jsonb_object_agg(o.outcome, o.times), '{}')
      from (select a ->> 'outcome' as outcome, count(*) as times from jsonb_array_elements(v_answers) a group by 1) o
    )));
    if not exists (
      select from audit.failures() f
      where f.kind = v_issue.kind and f.type = v_issue.type
        and audit.issue_id(f.kind, f.lane, f.type, audit.error_shape(f.error)) = p_id
    ) then
      update audit.issues i set failures = 0, dead_letters = 0, resolved_at = clock_timestamp(), resolved_by = p_actor where i.id = p_id;
    end if;
  end if;
  return query select a ->> 'ref', a ->> 'outcome' from jsonb_array_elements(v_answers) a;
end
$$;

-- Promise: the issue is resolved until it comes back, with an audit row; its failures stay. True where it was open, false where it was
-- resolved before, null where it is unknown. Second call: false. Locks: those of audit.note_issues → the issue.
create function public.issue_resolve(p_id uuid, p_actor text, p_reason text default null) returns boolean
language plpgsql security definer set search_path = '' as $$
declare
  v_issue audit.issues;
begin
  -- A failure that is there already does not open it again.
  perform audit.note_issues(clock_timestamp());
  select i.* into v_issue from audit.issues i where i.id = p_id for update;
  if v_issue.id is null or v_issue.resolved_at is not null then
    return case when v_issue.id is not null then false end;
  end if;
  update audit.issues i set resolved_at = clock_timestamp(), resolved_by = p_actor where i.id = p_id;
  perform audit.write_issue(v_issue, 'issue_resolve', p_actor, p_reason, jsonb_build_object('failures', v_issue.failures));
  return true;
end
$$;

-- Promise: up to p_limit things that the owner's address has to be told and that no other server is telling, each under a lease of
-- p_lease_sec seconds: what is issue_opened, issue_reopened, secret_missing or alert. An issue counts once it has a dead letter or has lasted a
-- minute: most failures pass. What began more than an hour ago is not news. Second call: the next ones. Locks: the alerts.
create function public.take_alerts(p_limit int, p_lease_sec int)
returns table (id bigint, token uuid, what text, subject text, at timestamptz, issue jsonb)
language plpgsql security definer set search_path = '' as $$
#variable_conflict use_column
declare
  c_news constant interval := '1 hour';
  v_at timestamptz := clock_timestamp();
  v_ids bigint[];
begin
  insert into audit.alerts (issue_id, opening, next_attempt_at)
  select i.id, i.openings, v_at from audit.issues i
  where i.resolved_at is null and i.opened_at > v_at - c_news and (i.dead_letters > 0 or i.opened_at < v_at - interval '1 minute')
    and not exists (select from audit.alerts a where a.issue_id = i.id and a.opening = i.openings)
  on conflict do nothing;
  -- Of dead letters the issues tell.
  insert into audit.alerts (mark_id, next_attempt_at)
  select m.id, v_at from audit.marks m
  where m.kind in ('alert', 'secret') and m.ended_at is null and m.began_at > v_at - c_news
    and m.subject !~ '(among the dead letters|refused deliveries of the inbox)'
    and not exists (select from audit.alerts a where a.mark_id = m.id)
  order by m.id
  on conflict do nothing;
  v_ids := array(
    select a.id from audit.alerts a where a.told_at is null and a.next_attempt_at <= v_at order by a.id limit p_limit for update skip locked
  );
  update audit.alerts a set token = gen_random_uuid(), next_attempt_at = v_at + make_interval(secs => p_lease_sec) where a.id = any (v_ids);
  return query
  select a.id, a.token, case when a.mark_id is null then case when a.opening > 1 then 'issue_reopened' else 'issue_opened' end
      when m.kind = 'secret' then 'secret_missing' else 'alert' end,
    coalesce(m.subject, concat_ws(' ', i.kind, i.lane, i.type)), coalesce(m.began_at, i.opened_at),
    to_jsonb(i) - array['example_error', 'opened_at', 'openings', 'resolved_at', 'resolved_by']
  from audit.alerts a
  left join audit.issues i on i.id = a.issue_id
  left join audit.marks m on m.id = a.mark_id
  where a.id = any (v_ids) order by a.id;
end
$$;

-- Promise: the alert was told, or is due again: after ten seconds, then twice as long each time, up to ten times. False where the
-- lease is another's by now. Second call: false. Locks: the alert.
create function public.finish_alert(p_id bigint, p_token uuid, p_is_told boolean) returns boolean
language plpgsql security definer set search_path = '' as $$
declare
  c_attempts_max constant int := 10;
begin
  update audit.alerts a
  set token = null, attempts = a.attempts + 1, told_at = case when p_is_told then clock_timestamp() end,
    next_attempt_at = case when a.attempts + 1 < c_attempts_max then clock_timestamp() + 10 * 2 ^ a.attempts * interval '1 second' else 'infinity' end
  where a.id = p_id and a.token = p_token;
  return found;
end
$$;
