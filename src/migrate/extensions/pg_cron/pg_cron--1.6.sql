-- A stand-in for pg_cron where the real one cannot be had: tables and functions with pg_cron's own names and
-- signatures, so that the same migration runs on both. It runs no job itself; the Node scheduler asks which are due
-- and has them run. A command runs inside a function, so one that needs no transaction around it (vacuum) fails.
-- Unlike the real one it gives PUBLIC nothing.

create schema cron;
revoke all on schema cron from public;

create sequence cron.jobid_seq;
create sequence cron.runid_seq;

create table cron.job (
  jobid bigint primary key default nextval('cron.jobid_seq'),
  schedule text not null,
  command text not null,
  nodename text not null default 'localhost',
  nodeport integer not null default coalesce(inet_server_port(), current_setting('port')::integer),
  database text not null default current_database(),
  username text not null default current_user,
  active boolean not null default true,
  jobname text,
  constraint jobname_username_uniq unique (jobname, username)
);

create table cron.job_run_details (
  jobid bigint,
  runid bigint primary key default nextval('cron.runid_seq'),
  job_pid integer,
  database text,
  username text,
  command text,
  status text,
  return_message text,
  start_time timestamptz,
  end_time timestamptz
);

-- The last moment each job was started for: what keeps two schedulers from running it twice. Ours, not pg_cron's.
create table cron.job_starts (
  jobid bigint primary key references cron.job on delete cascade,
  due_at timestamptz not null
);

alter table cron.job enable row level security;
alter table cron.job_run_details enable row level security;
create policy cron_job_policy on cron.job using (username = current_user);
create policy cron_job_run_details_policy on cron.job_run_details using (username = current_user);

-- One bound of a field as a number: digits, or the first three letters of a month or a weekday. Null for
-- anything else. Second call: the same answer. Takes no locks.
create function cron._schedule_number(p_text text, p_names text[], p_offset integer) returns integer
language sql immutable set search_path = '' as $$
  select case
    when p_text ~ '^[0-9]{1,4}$' then p_text::integer
    else array_position(p_names, lower(left(p_text, 3))) - 1 + p_offset
  end;
$$;

-- The items of a field of a schedule (a list of *, n, a-b, each perhaps with /step); nulls for an item of another form.
-- Second call: the same answer. Takes no locks.
create function cron._schedule_items(p_field text, p_names text[], p_offset integer)
returns table (is_any boolean, low integer, high integer, step integer)
language plpgsql immutable set search_path = '' as $$
begin
  return query
  select coalesce(p[1] = '*' and p[2] is null, false), cron._schedule_number(p[1], p_names, p_offset),
    cron._schedule_number(coalesce(p[2], p[1]), p_names, p_offset), coalesce(p[3]::integer, 1)
  from unnest(string_to_array(p_field, ',')) as i
  cross join lateral regexp_match(i, '^(\*|[[:alnum:]]+)(?:-([[:alnum:]]+))?(?:/([0-9]{1,4}))?$') as p;
end;
$$;

-- True when a field of a schedule stays within its range. Second call: the same answer. Takes no locks.
create function cron._schedule_field_is_valid(
  p_field text,
  p_min integer,
  p_max integer,
  p_names text[] default '{}',
  p_offset integer default 0
)
returns boolean
language plpgsql immutable set search_path = '' as $$
begin
  return (
    select coalesce(bool_and(i.step >= 1 and (
      i.is_any or coalesce(i.low >= p_min and i.high <= p_max and i.low <= i.high, false)
    )), false)
    from cron._schedule_items(p_field, p_names, p_offset) i
  );
end;
$$;

-- Raises an error unless the schedule is one pg_cron takes: five fields, `1..59 seconds`, or an @name.
-- Second call: the same. Takes no locks.
create function cron._check_schedule(p_schedule text) returns void
language plpgsql immutable set search_path = '' as $$
declare
  v_fields text[] := regexp_split_to_array(btrim(p_schedule), '\s+');
  v_months constant text[] := '{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}';
  v_days constant text[] := '{sun,mon,tue,wed,thu,fri,sat}';
begin
  if p_schedule ~* '^\s*([1-9]|[1-5][0-9])\s+seconds?\s*$'
    or lower(btrim(p_schedule)) in
      ('@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly', '@reboot') then
    return;
  end if;
  if cardinality(v_fields) = 5
    and cron._schedule_field_is_valid(v_fields[1], 0, 59)
    and cron._schedule_field_is_valid(v_fields[2], 0, 23)
    and (v_fields[3] = '$' or cron._schedule_field_is_valid(v_fields[3], 1, 31))
    and cron._schedule_field_is_valid(v_fields[4], 1, 12, v_months, 1)
    and cron._schedule_field_is_valid(v_fields[5], 0, 7, v_days, 0) then
    return;
  end if;
  raise exception 'invalid schedule: %', coalesce(p_schedule, '(null)') using
    errcode = 'invalid_parameter_value',
    hint = 'Use cron format (e.g. 5 4 * * *), or interval format ''[1-59] seconds''';
end;
$$;

-- Puts a job on the table and returns its id. A second call with the same name by the same user changes that
-- job and returns the same id. Locks the job's row.
create function cron.schedule_in_database(
  job_name text,
  schedule text,
  command text,
  database text,
  username text default null,
  active boolean default true
)
returns bigint
language plpgsql set search_path = '' as $$
#variable_conflict use_column
declare
  v_jobid bigint;
begin
  perform cron._check_schedule(schedule_in_database.schedule);
  insert into cron.job as j (schedule, command, database, username, active, jobname)
  values (
    schedule_in_database.schedule,
    schedule_in_database.command,
    schedule_in_database.database,
    coalesce(schedule_in_database.username, current_user::text),
    schedule_in_database.active,
    schedule_in_database.job_name
  )
  on conflict on constraint jobname_username_uniq do update
  set schedule = excluded.schedule,
    command = excluded.command,
    database = excluded.database,
    active = excluded.active
  returning j.jobid into v_jobid;
  return v_jobid;
end;
$$;

-- Schedules a job under a name. A second call with that name changes the job. Locks the job's row.
create function cron.schedule(job_name text, schedule text, command text) returns bigint
language plpgsql set search_path = '' as $$
begin
  if job_name is null then
    raise exception 'job_name can not be NULL' using errcode = 'null_value_not_allowed';
  end if;
  return cron.schedule_in_database(job_name, schedule, command, current_database()::text);
end;
$$;

-- Schedules a job without a name. A second call makes a second job. Takes no locks but its own row's.
create function cron.schedule(schedule text, command text) returns bigint
language sql set search_path = '' as $$
  select cron.schedule_in_database(null, schedule, command, current_database()::text);
$$;

-- Removes a job of the caller, by its id or its name. A second call raises an error: there is nothing to remove. Locks
-- the row.
create function cron._remove_job(p_jobid bigint, p_jobname text) returns boolean
language plpgsql set search_path = '' as $$
begin
  delete from cron.job j where (j.jobid = p_jobid or j.jobname = p_jobname) and j.username = current_user;
  if not found then
    raise exception 'could not find valid entry for job ''%''', coalesce(p_jobname, p_jobid::text)
      using errcode = 'undefined_object';
  end if;
  return true;
end;
$$;

-- Removes a job of the caller by id. Second call and locks: as cron._remove_job.
create function cron.unschedule(job_id bigint) returns boolean
language sql set search_path = '' as $$
  select cron._remove_job(job_id, null);
$$;

-- Removes a job of the caller by name. Second call and locks: as cron._remove_job.
create function cron.unschedule(job_name text) returns boolean
language sql set search_path = '' as $$
  select cron._remove_job(null, job_name);
$$;

-- Changes what is given of a job, leaves the rest. A second call changes nothing more. Locks the job's row.
create function cron.alter_job(
  job_id bigint,
  schedule text default null,
  command text default null,
  database text default null,
  username text default null,
  active boolean default null
)
returns void
language plpgsql set search_path = '' as $$
#variable_conflict use_column
begin
  if alter_job.schedule is not null then
    perform cron._check_schedule(alter_job.schedule);
  end if;
  update cron.job j
  set schedule = coalesce(alter_job.schedule, j.schedule),
    command = coalesce(alter_job.command, j.command),
    database = coalesce(alter_job.database, j.database),
    username = coalesce(alter_job.username, j.username),
    active = coalesce(alter_job.active, j.active)
  where j.jobid = alter_job.job_id;
  if not found then
    raise exception 'Job % does not exist or you don''t own it', alter_job.job_id using errcode = 'undefined_object';
  end if;
end;
$$;

-- True when a value is in a field of a schedule that cron._check_schedule has let through. A step after a single
-- number means nothing, as in pg_cron. Second call: the same answer. Takes no locks.
create function cron._schedule_field_matches(
  p_field text, p_value integer, p_min integer, p_names text[] default '{}', p_offset integer default 0
)
returns boolean
language plpgsql immutable set search_path = '' as $$
begin
  return exists (
    select from cron._schedule_items(p_field, p_names, p_offset) i
    where case
      when i.is_any then (p_value - p_min) % i.step = 0
      else p_value between i.low and i.high and (p_value - i.low) % i.step = 0
    end
  );
end;
$$;

-- True when a schedule of five fields names this minute, read in UTC as pg_cron does. Where both days are given, one
-- of them is enough; a day field that begins with * asks for nothing. Second call: the same. Takes no locks.
create function cron._schedule_matches(p_fields text[], p_minute timestamptz) returns boolean
language plpgsql stable set search_path = '' as $$
declare
  v_at timestamp := p_minute at time zone 'UTC';
  v_dow integer := extract(dow from v_at);
  v_months constant text[] := '{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}';
  v_days constant text[] := '{sun,mon,tue,wed,thu,fri,sat}';
  v_dom_matches boolean;
  v_dow_matches boolean;
begin
  if not cron._schedule_field_matches(p_fields[1], extract(minute from v_at)::integer, 0)
    or not cron._schedule_field_matches(p_fields[2], extract(hour from v_at)::integer, 0)
    or not cron._schedule_field_matches(p_fields[4], extract(month from v_at)::integer, 1, v_months, 1) then
    return false;
  end if;
  v_dom_matches := case
    when p_fields[3] = '$' then extract(day from v_at + interval '1 day') = 1
    else cron._schedule_field_matches(p_fields[3], extract(day from v_at)::integer, 1)
  end;
  -- Sunday is 0 and 7.
  v_dow_matches := cron._schedule_field_matches(p_fields[5], v_dow, 0, v_days, 0)
    or (v_dow = 0 and p_fields[5] !~ '^\*' and cron._schedule_field_matches(p_fields[5], 7, 0, v_days, 0));
  if p_fields[3] ~ '^\*' or p_fields[5] ~ '^\*' then
    return v_dom_matches and v_dow_matches;
  end if;
  return v_dom_matches or v_dow_matches;
end;
$$;

-- The last moment after p_since, up to p_at, that the schedule names; null when there is none. However many moments
-- passed meanwhile, it is one: what a stall missed is run once. Second call: the same. Takes no locks.
create function cron._last_due(p_schedule text, p_at timestamptz, p_since timestamptz) returns timestamptz
language plpgsql stable set search_path = '' as $$
declare
  v_schedule text := lower(btrim(p_schedule));
  v_seconds integer := (regexp_match(v_schedule, '^([0-9]+)\s+seconds?$'))[1];
  v_fields text[];
begin
  if v_seconds is not null then
    return to_timestamp(floor(extract(epoch from p_at) / v_seconds) * v_seconds);
  elsif v_schedule = '@reboot' then
    return pg_catalog.pg_postmaster_start_time();
  end if;
  v_fields := regexp_split_to_array(case v_schedule
    when '@yearly' then '0 0 1 1 *'
    when '@annually' then '0 0 1 1 *'
    when '@monthly' then '0 0 1 * *'
    when '@weekly' then '0 0 * * 0'
    when '@daily' then '0 0 * * *'
    when '@midnight' then '0 0 * * *'
    when '@hourly' then '0 * * * *'
    else v_schedule
  end, '\s+');
  return (
    select m
    from generate_series(
      date_trunc('minute', p_at), date_trunc('minute', p_since) + interval '1 minute', interval '-1 minute'
    ) as m
    where cron._schedule_matches(v_fields, m)
    limit 1
  );
end;
$$;

-- The active jobs of this database that have not been started for their last moment in (p_since, p_at], and that
-- moment. Without p_since only the minute of p_at counts; moments more than a day back are left out. Second call: the
-- same, until a scheduler runs them. Takes no locks.
create function cron.due_jobs(p_at timestamptz, p_since timestamptz default null)
returns table (jobid bigint, due_at timestamptz)
language sql stable set search_path = '' as $$
  select j.jobid, d.due_at
  from cron.job j
  cross join lateral (
    select cron._last_due(
      j.schedule, p_at, greatest(coalesce(p_since, p_at - interval '1 minute'), p_at - interval '1 day')
    ) as due_at
  ) d
  left join cron.job_starts s on s.jobid = j.jobid
  where j.active and j.database = current_database() and d.due_at > coalesce(s.due_at, '-infinity')
  order by j.jobid;
$$;

-- Runs the job's command as its user, with that user's search path, and writes down how it went; a failure undoes the
-- command and nothing else. Answers succeeded or failed; null when it ran for this moment already or is running now.
-- Second call for the same moment: null. Locks the job (advisory), and whatever the command locks.
create function cron.run_job(p_jobid bigint, p_due_at timestamptz) returns text
language plpgsql set search_path = '' as $$
declare
  v_job cron.job;
  v_started_at timestamptz := clock_timestamp();
  v_status text := 'succeeded';
  v_message text;
  v_rows bigint;
begin
  if not pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended('sluice cron job', p_jobid)) then
    return null;
  end if;
  select j.* into v_job from cron.job j where j.jobid = p_jobid and j.active;
  if not found then
    return null;
  end if;
  insert into cron.job_starts as s (jobid, due_at) values (p_jobid, p_due_at)
  on conflict (jobid) do update set due_at = excluded.due_at where s.due_at < excluded.due_at;
  if not found then
    return null;
  end if;
  begin
    perform set_config('search_path', (select s.reset_val from pg_catalog.pg_settings s where s.name = 'search_path'), true);
    perform set_config('role', v_job.username, true);
    execute v_job.command;
    get diagnostics v_rows = row_count;
    v_message := v_rows || case when v_rows = 1 then ' row' else ' rows' end;
    perform set_config('role', 'none', true);
    perform set_config('search_path', '', true);
  exception
    -- A statement timeout is query_canceled, which "others" leaves out.
    when query_canceled or others then
      v_status := 'failed';
      v_message := 'ERROR: ' || sqlerrm;
  end;
  insert into cron.job_run_details (
    jobid, job_pid, database, username, command, status, return_message, start_time, end_time
  )
  values (
    p_jobid, pg_backend_pid(), v_job.database, v_job.username, v_job.command, v_status, v_message, v_started_at,
    clock_timestamp()
  );
  return v_status;
end;
$$;

revoke all on all tables in schema cron from public;
revoke all on all sequences in schema cron from public;
revoke all on all functions in schema cron from public;
