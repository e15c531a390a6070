-- The drain trigger asks the bridge worker each minute: what is due in DB2 it cannot see from here.
begin;
select plan(14);

delete from pgmq.q_intake_queue;
set local app.bridge_worker_url = 'http://127.0.0.1:9/bridge-worker';
set local app.service_role_key = 'a-key';
create temp table asked as select intake.trigger_drain() as id;
select isnt((select id from asked), null, 'with nothing due in this database the worker is asked: DB2 may have work');
select is(
  (select to_jsonb(r) ->> 'method' || ' ' || r.url from net.http_request_queue r join asked a on a.id = r.id),
  'POST http://127.0.0.1:9/bridge-worker', 'the request goes to the bridge worker'
);
select is(
  (select r.headers ->> 'Authorization' from net.http_request_queue r join asked a on a.id = r.id), 'Bearer a-key',
  'the request carries the service key'
);

select is(
  (select r.timeout_milliseconds from net.http_request_queue r join asked a on a.id = r.id), 120000,
  'the request may take as long as the worker may'
);

-- What the worker answered stands where pg_net keeps it; the job that looks at it fails where it was not a yes.
create function pg_temp.answer(p_status int, p_content text, p_error text default null) returns bigint
language sql as $$
  insert into net._http_response (id, status_code, content, timed_out, error_msg)
  select max(r.id), p_status, p_content, false, p_error from net.http_request_queue r
  returning id;
$$;
select is(intake.check_drain(), null, 'a request that was just sent has no answer yet');
select pg_temp.answer(200, '{"status":"idle"}');
select is(intake.check_drain(), 200, 'after a yes the job succeeds');
select intake.trigger_drain();
select pg_temp.answer(401, '{"error":{"code":"auth_required"}}');
select throws_ok(
  'select intake.check_drain()', 'P0001', 'the bridge worker answered 401: {"error":{"code":"auth_required"}}',
  'after a refusal the job fails, and says which'
);
select isnt(intake.trigger_drain(), null, 'and the next request is sent all the same');
select pg_temp.answer(null, null, 'Could not resolve host');
select throws_ok(
  'select intake.check_drain()', 'P0001', 'the bridge worker answered Could not resolve host',
  'an address that no server has is told too'
);
delete from net._http_response;
update intake.drain_requests set asked_at = now() - interval '5 minutes';
select throws_ok(
  'select intake.check_drain()', 'P0001', 'the bridge worker answered nothing: is pg_net running?',
  'and so is a request that nothing has answered in time'
);

set local app.service_role_key = '';
select throws_ok(
  'select intake.trigger_drain()', 'P0001',
  'the setting service_role_key is missing: the bridge worker would refuse the request',
  'without a key the job fails, and says so'
);
set local app.bridge_worker_url = '';
create temp table before as select count(*) as requests from net.http_request_queue;
select is(intake.trigger_drain(), null, 'without an address no call is made');
select is(
  (select count(*) from net.http_request_queue), (select requests from before), 'and no request is queued'
);
select is(intake.setting('no_such_setting'), null, 'a setting that was never made is null');

select * from finish();
rollback;
