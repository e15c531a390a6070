-- A stand-in for pg_cron where the real one cannot be had: tables and functions with pg_cron's own names and
-- signatures, so that the same migration runs on both. It runs no job itself; the scheduler reads cron.job.
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

alter table cron.job enable row level security;
alter table cron.job_run_details enable row level security;
create policy cron_job_policy on cron.job using (username = current_user);
create policy cron_job_run_details_policy on cron.job_run_details using (username = current_user);

-- One bound of a field as a number: digits, or the first three letters of a month or a weekday. Null for
-- anything else. Second call: the same answer. Takes no locks.
create function cron._schedule_number(p_text text, p_names text[], p_offset integer)
returns integer
language sql
immutable
set search_path = ''
as $$
  select case
    when p_text ~ '^[0-9]{1,4}$' then p_text::integer
    else array_position(p_names, lower(left(p_text, 3))) - 1 + p_offset
  end;
$$;

-- True when a field of a schedule (a list of *, n, a-b, each perhaps with /step) stays within its range.
-- Second call: the same answer. Takes no locks.
create function cron._schedule_field_is_valid(
  p_field text,
  p_min integer,
  p_max integer,
  p_names text[] default '{}',
  p_offset integer default 0
)
returns boolean
language plpgsql
immutable
set search_path = ''
as $$
declare
  v_item text;
  v_parts text[];
  v_low integer;
  v_high integer;
begin
  foreach v_item in array string_to_array(p_field, ',') loop
    v_parts := regexp_match(v_item, '^(\*|[[:alnum:]]+)(?:-([[:alnum:]]+))?(?:/([0-9]{1,4}))?$');
    if v_parts is null or v_parts[3]::integer < 1 then
      return false;
    end if;
    if v_parts[1] = '*' then
      if v_parts[2] is not null then
        return false;
      end if;
      continue;
    end if;
    v_low := cron._schedule_number(v_parts[1], p_names, p_offset);
    v_high := case when v_parts[2] is null then v_low else cron._schedule_number(v_parts[2], p_names, p_offset) end;
    if v_low is null or v_high is null or v_low < p_min or v_high > p_max or v_low > v_high then
      return false;
    end if;
  end loop;
  return cardinality(string_to_array(p_field, ',')) > 0;
end;
$$;

-- Raises an error unless the schedule is one pg_cron takes: five fields, `1..59 seconds`, or an @name.
-- Second call: the same. Takes no locks.
create function cron._check_schedule(p_schedule text)
returns void
language plpgsql
immutable
set search_path = ''
as $$
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
language plpgsql
set search_path = ''
as $$
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
create function cron.schedule(job_name text, schedule text, command text)
returns bigint
language plpgsql
set search_path = ''
as $$
begin
  if job_name is null then
    raise exception 'job_name can not be NULL' using errcode = 'null_value_not_allowed';
  end if;
  return cron.schedule_in_database(job_name, schedule, command, current_database()::text);
end;
$$;

-- Schedules a job without a name. A second call makes a second job. Takes no locks but its own row's.
create function cron.schedule(schedule text, command text)
returns bigint
language sql
set search_path = ''
as $$
  select cron.schedule_in_database(null, schedule, command, current_database()::text);
$$;

-- Removes a job of the caller by id. A second call raises an error: there is nothing to remove. Locks the row.
create function cron.unschedule(job_id bigint)
returns boolean
language plpgsql
set search_path = ''
as $$
begin
  delete from cron.job j where j.jobid = job_id and j.username = current_user;
  if not found then
    raise exception 'could not find valid entry for job ''%''', job_id using errcode = 'undefined_object';
  end if;
  return true;
end;
$$;

-- Removes a job of the caller by name. A second call raises an error: there is nothing to remove. Locks the row.
create function cron.unschedule(job_name text)
returns boolean
language plpgsql
set search_path = ''
as $$
begin
  delete from cron.job j where j.jobname = job_name and j.username = current_user;
  if not found then
    raise exception 'could not find valid entry for job ''%''', job_name using errcode = 'undefined_object';
  end if;
  return true;
end;
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
language plpgsql
set search_path = ''
as $$
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

revoke all on all tables in schema cron from public;
revoke all on all sequences in schema cron from public;
revoke all on all functions in schema cron from public;
