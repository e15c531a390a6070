-- The drain trigger asks the bridge worker each minute: what is due in DB2 it cannot see from here.
begin;
select plan(6);

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

set local app.bridge_worker_url = '';
create temp table before as select count(*) as requests from net.http_request_queue;
select is(intake.trigger_drain(), null, 'without an address no call is made');
select is(
  (select count(*) from net.http_request_queue), (select requests from before), 'and no request is queued'
);
select is(intake.setting('no_such_setting'), null, 'a setting that was never made is null');

select * from finish();
rollback;
