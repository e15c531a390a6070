-- HOOK URLS: a pool's hooks, our calls to its addresses, must stand on the public internet. Checked here when a URL is
-- stored, and by the caller again, after DNS, when it is called. The owner can allow a host by name, for what runs in
-- the same network.

-- Hosts that may have any address, as in a URL: lower case, with the port where only that port is meant.
create table intake.hook_allowed_hosts (
  host text primary key,
  constraint host_as_in_a_url check (host ~ '^([a-z0-9.-]{1,253}|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$')
);

-- Promise: true unless this is a public unicast address: IANA's special-purpose registries and the addresses of cloud
-- metadata services are special. Of IPv6 only 2000::/3 is public, less what carries an IPv4 address or is documentation.
-- Second call: the same. Locks: none.
create function intake.is_special_address(p_address inet) returns boolean
language sql immutable parallel safe set search_path = '' as $$
  select case family(p_address)
    when 4 then p_address <<= any (array[
      '0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '168.63.129.16/32', '169.254.0.0/16', '172.16.0.0/12',
      '192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24',
      '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'
    ]::inet[])
    else not p_address <<= '2000::/3'::inet
      or p_address <<= any (array['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/16']::inet[])
  end;
$$;

-- Promise: why a host of a URL is not on the public internet, as far as one can tell without DNS, or null. A name whose
-- last label is a number is an address to every URL parser, in one of a dozen spellings: only the plain one passes.
-- Second call: the same. Locks: none.
create function intake.host_refusal(p_host text) returns text
language plpgsql immutable set search_path = '' as $$
declare
  v_host text := rtrim(lower(p_host), '.');
begin
  if v_host ~ '^\[.*\]$' or v_host ~ '(^|\.)([0-9]+|0x[0-9a-f]*)$' then
    if v_host !~ '^\[' and v_host !~ '^(0|[1-9][0-9]{0,2})(\.(0|[1-9][0-9]{0,2})){3}$' then
      return 'an address in an unusual spelling';
    elsif intake.is_special_address(btrim(v_host, '[]')::inet) then
      return 'a private or special address';
    end if;
  elsif v_host !~ '\.'
    or v_host ~ '\.(localhost|local|internal|intranet|private|corp|home|lan|home\.arpa|svc)$' then
    return 'a local name';
  end if;
  return null;
exception
  when invalid_text_representation then
    return 'no address';
end
$$;

-- Promise: why a URL cannot be a hook's, or null. Only plain spellings pass: what two parsers could read in two ways
-- (credentials, backslashes, spaces, percent signs in the host) is refused. Second call: the same. Locks: none.
create function intake.hook_url_refusal(p_url text) returns text
language plpgsql stable set search_path = '' as $$
declare
  v_parts text[] := regexp_match(
    p_url, '^https?://((?:[a-z0-9.-]{1,253}|\[[0-9a-f:.]+\]))(:[0-9]{1,5})?(?:[/?#][^[:space:][:cntrl:]\\]*)?$', 'i'
  );
  v_host text := lower(v_parts[1]);
begin
  if p_url ~* '^https?://[^/?#]*@' then
    return 'has credentials in it';
  elsif v_parts is null or substr(v_parts[2], 2)::int > 65535 then
    return 'not a plain http or https URL';
  elsif exists (
    select from intake.hook_allowed_hosts a where a.host in (v_host, v_host || v_parts[2])
  ) then
    return null;
  end if;
  return intake.host_refusal(v_host);
end
$$;

-- Trigger. Promise: engine_config holds no hook URL that intake.hook_url_refusal refuses: raises SL001. Second
-- call: the same. Locks: none. Definer: a role that may configure a pool need not have rights to the list of hosts.
create function intake.hook_urls_are_public() returns trigger
language plpgsql security definer set search_path = '' as $$
declare
  v_url text;
  v_refusal text;
begin
  foreach v_url in array array[new.validation_webhook_url, new.commit_webhook_url] loop
    v_refusal := case when v_url is not null then intake.hook_url_refusal(v_url) end;
    if v_refusal is not null then
      raise exception 'the hook URL of pool % is refused: %', new.pool_id, v_refusal
        using errcode = 'SL001',
        hint = 'use a public http or https address, or let the owner run: sluice hosts allow';
    end if;
  end loop;
  return new;
end
$$;

create trigger hook_urls_are_public
  before insert or update of validation_webhook_url, commit_webhook_url on public.engine_config
  for each row execute function intake.hook_urls_are_public();

-- Trigger. Promise: a pool that begins to validate does not ask about claims whose messages a worker has tried before,
-- replayed ones among them: the ledger may have them, and neither a refusal nor a hold that runs out may free their slots.
-- They count as validated, in their messages or dead letters, and claims. The lock leaves no gap: this function sees the
-- takes before it, and takes after it get no message of the pool until they can read the new rules (public.bridge_take).
-- A message read without bridge_take has no such promise; the bridge asks the ledger before it refuses a message that was
-- delivered before. Second call: the same.
-- Locks: intake.validation_lock_key → the pool's messages that were tried, in the order of their ids → their claims →
-- dead letters. Not those that were handed back untried: intake.give_back_claim may hold their claims and wait for them.
-- Definer: as hook_urls_are_public.
create function intake.validation_begins() returns trigger
language plpgsql security definer set search_path = '' as $$
declare
  v_msg_ids bigint[];
  v_claim_ids uuid[];
begin
  perform pg_catalog.pg_advisory_xact_lock(intake.validation_lock_key(new.pool_id));
  with tried as materialized (
    select q.msg_id, q.message ->> 'claim_id' as claim_id
    from pgmq.q_intake_queue q
    where q.message ->> 'pool_id' = new.pool_id
      and (
        q.message ? 'replayed_from'
        or q.read_ct > 0 and (q.message -> 'untried' = jsonb_build_array(q.msg_id, q.read_ct)) is not true
      )
    order by q.msg_id
    for update
  )
  select array_agg(t.msg_id), array_agg(intake.uuid_or_null(t.claim_id)) into v_msg_ids, v_claim_ids from tried t;
  update pgmq.q_intake_queue q
  set message = q.message || '{"state": "validated"}'
  where q.msg_id = any (v_msg_ids);
  update public.claims c
  set state = 'validated', hold_until = null
  where c.claim_id = any (v_claim_ids) and c.msg_id = any (v_msg_ids) and c.state = 'queued';
  update pgmq.q_intake_dlq d
  set message = d.message || '{"state": "validated"}'
  where d.message ->> 'pool_id' = new.pool_id;
  return null;
end
$$;

create trigger validation_begins_with_new_claims
  after update of validation_webhook_url on public.engine_config
  for each row when (old.validation_webhook_url is null and new.validation_webhook_url is not null)
  execute function intake.validation_begins();

-- A pool without a row has the defaults, and so it did not validate.
create trigger validation_begins_with_new_rules
  after insert on public.engine_config
  for each row when (new.validation_webhook_url is not null)
  execute function intake.validation_begins();

-- Promise: the host is on the list, or no longer there, with one audit row of that action; true when that is a change.
-- Raises SL001 for what is not a host, and without an actor. Second call: false, and no audit row. Locks: the host's row.
create function intake.list_hook_host(p_host text, p_is_allowed boolean, p_actor text, p_reason text) returns boolean
language plpgsql set search_path = '' as $$
begin
  if p_is_allowed then
    insert into intake.hook_allowed_hosts (host) values (lower(p_host)) on conflict do nothing;
  else
    delete from intake.hook_allowed_hosts a where a.host = lower(p_host);
  end if;
  if found then
    insert into audit.audit_logs (actor, action, subject, reason)
    values (p_actor, case when p_is_allowed then 'hook_host_allow' else 'hook_host_disallow' end,
      'hook host ' || lower(p_host), p_reason);
    return true;
  end if;
  return false;
exception
  when check_violation or not_null_violation then
    raise exception 'p_host must be a host as in a URL, with or without a port, and p_actor a name'
      using errcode = 'SL001', hint = 'for example hooks.example.com or 127.0.0.1:8080';
end
$$;

-- Promise: hooks may be on this host (or host:port) whatever its address. True when it is new on the list.
-- Second call: false. Locks: those of intake.list_hook_host.
-- For the owner only, as the next: a role that may configure pools must not open this network for itself.
create function public.allow_hook_host(p_host text, p_actor text, p_reason text default null) returns boolean
language sql set search_path = '' as $$
  select intake.list_hook_host(p_host, true, p_actor, p_reason);
$$;

-- Promise: takes the host off the list; pools that use it keep their URLs, and their calls are refused from now on.
-- True when it was on the list. Second call: false. Locks: those of intake.list_hook_host.
create function public.disallow_hook_host(p_host text, p_actor text, p_reason text default null) returns boolean
language sql set search_path = '' as $$
  select intake.list_hook_host(p_host, false, p_actor, p_reason);
$$;

-- Promise: the hosts that the owner has allowed. Second call: the same. Locks: none. Definer: service_role has no rights to
-- the list.
create function public.hook_allowed_hosts() returns setof text
language sql stable security definer set search_path = '' as $$
  select a.host from intake.hook_allowed_hosts a order by a.host;
$$;
