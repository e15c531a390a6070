-- A stand-in for pg_net where the real one cannot be had: tables and functions with pg_net's own names and
-- signatures, so that the same migration runs on both. It sends nothing itself; the Node scheduler takes what is
-- queued, sends it and stores the answer. Unlike the real one it gives PUBLIC nothing.

create schema net;
revoke all on schema net from public;

create domain net.http_method as text
  check (value in ('GET', 'POST', 'DELETE'));

create sequence net.http_request_queue_id_seq;

-- Unlogged as in pg_net: after a crash the next caller sends a lost request again.
create unlogged table net.http_request_queue (
  id bigint not null default nextval('net.http_request_queue_id_seq'),
  method net.http_method not null,
  url text not null,
  headers jsonb,
  body bytea,
  timeout_milliseconds integer not null
);

create unlogged table net._http_response (
  id bigint,
  status_code integer,
  content_type text,
  headers jsonb,
  content text,
  timed_out boolean,
  error_msg text,
  created timestamptz not null default now()
);
create index _http_response_created_idx on net._http_response (created);

-- Percent-encodes a text for use in a query string. Second call: encodes the percent signs again. No locks.
create function net._urlencode_string(string text) returns text
language sql immutable set search_path = '' as $$
  select coalesce(string_agg(
    case
      when v_byte between 48 and 57 or v_byte between 65 and 90 or v_byte between 97 and 122
        or v_byte in (45, 46, 95, 126) then chr(v_byte)
      else '%' || upper(lpad(to_hex(v_byte), 2, '0'))
    end, '' order by v_at), '')
  from (
    select v_at, get_byte(convert_to(string, 'UTF8'), v_at) as v_byte
    from generate_series(0, octet_length(convert_to(string, 'UTF8')) - 1) as v_at
  ) as bytes;
$$;

-- The url with the members of `params` added to its query. Second call: adds them again. No locks.
create function net._url_with_params(url text, params jsonb) returns text
language sql immutable set search_path = '' as $$
  select url || coalesce(
    case when position('?' in url) > 0 then '&' else '?' end
    || string_agg(net._urlencode_string(key) || '=' || net._urlencode_string(coalesce(value, '')), '&' order by key),
    '')
  from jsonb_each_text(params);
$$;

-- Queues a request and returns its id. A second call queues a second request. Takes no locks but its own row's.
create function net._queue_request(
  method text,
  url text,
  params jsonb,
  headers jsonb,
  body jsonb,
  timeout_milliseconds integer
)
returns bigint
language sql set search_path = '' as $$
  insert into net.http_request_queue (method, url, headers, body, timeout_milliseconds)
  values (method, net._url_with_params(url, params), headers, convert_to(body::text, 'UTF8'), timeout_milliseconds)
  returning id;
$$;

-- Queues a GET and returns the request's id. A second call queues a second request.
create function net.http_get(
  url text,
  params jsonb default '{}',
  headers jsonb default '{}',
  timeout_milliseconds integer default 5000
)
returns bigint
language sql set search_path = '' as $$
  select net._queue_request('GET', url, params, headers, null, timeout_milliseconds);
$$;

-- Queues a POST with a JSON body and returns the request's id. A second call queues a second request.
create function net.http_post(
  url text,
  body jsonb default '{}',
  params jsonb default '{}',
  headers jsonb default '{"Content-Type": "application/json"}',
  timeout_milliseconds integer default 5000
)
returns bigint
language plpgsql set search_path = '' as $$
declare
  v_content_type text := (
    select h.value from jsonb_each_text(headers) as h where lower(h.key) = 'content-type' limit 1
  );
begin
  if v_content_type is null then
    headers := coalesce(headers, '{}') || '{"Content-Type": "application/json"}';
  elsif v_content_type !~* '^application/json' then
    raise exception 'Content-Type header must be "application/json"' using errcode = 'invalid_parameter_value';
  end if;
  return net._queue_request('POST', url, params, headers, body, timeout_milliseconds);
end;
$$;

-- Queues a DELETE and returns the request's id. A second call queues a second request.
create function net.http_delete(
  url text,
  params jsonb default '{}',
  headers jsonb default '{}',
  timeout_milliseconds integer default 5000,
  body jsonb default null
)
returns bigint
language sql set search_path = '' as $$
  select net._queue_request('DELETE', url, params, headers, body, timeout_milliseconds);
$$;

-- Takes up to p_limit requests off the queue, to be sent now. Second call: the next ones. One that is taken and not
-- sent, because the sender died, is lost, as in pg_net. Locks the requests; what others are taking is skipped.
create function net.take_requests(p_limit integer)
returns table (id bigint, method text, url text, headers jsonb, body bytea, timeout_milliseconds integer)
language sql set search_path = '' as $$
  with taken as materialized (
    select q.ctid from net.http_request_queue q order by q.id limit p_limit for update skip locked
  )
  delete from net.http_request_queue q
  using taken t
  where q.ctid = t.ctid
  returning q.id, q.method::text, q.url, q.headers, q.body, q.timeout_milliseconds;
$$;

-- Keeps the answer to a request, or why there was none. A second call keeps a second one. Takes no locks.
create function net.store_response(
  p_id bigint,
  p_status_code integer,
  p_content_type text,
  p_headers jsonb,
  p_content text,
  p_timed_out boolean,
  p_error_msg text
)
returns void
language sql set search_path = '' as $$
  insert into net._http_response (id, status_code, content_type, headers, content, timed_out, error_msg)
  values (p_id, p_status_code, p_content_type, p_headers, p_content, p_timed_out, p_error_msg);
$$;

-- Drops answers that are older than pg_net would keep them, and says how many. Second call: 0. Locks the rows.
create function net.purge_responses(p_older_than interval default '6 hours') returns integer
language sql set search_path = '' as $$
  with purged as (delete from net._http_response r where r.created < now() - p_older_than returning r.id)
  select count(*)::integer from purged;
$$;

revoke all on all tables in schema net from public;
revoke all on all sequences in schema net from public;
revoke all on all functions in schema net from public;
