-- One sample for all servers, minutes from samples, and what is old is gone.
begin;
select plan(20);

select tests.empty_queues();
delete from public.inventory_slots;
delete from public.engine_config;
delete from audit.samples;
delete from audit.minute_samples;
delete from audit.marks;
update audit.sampler set parts = '{}';

create function pg_temp.at(p_sec int) returns timestamptz language sql
as $$ select timestamptz '2026-03-01 10:00:00+00' + make_interval(secs => p_sec) $$;

insert into public.inventory_slots (pool_id) select 'gig' from generate_series(1, 10);

select is(public.take_sample('[]', pg_temp.at(1)) ->> 'queue_depth', '0', 'a sample is a look at the database');
select is((select at from audit.samples), pg_temp.at(0), 'of these two seconds');
select public.claim_resource_and_queue('gig', 'u' || i) from generate_series(1, 3) i;
select is(
  public.take_sample('[]', pg_temp.at(1)) ->> 'queue_depth', '0', 'a second server is given the sample that stands'
);
select is((select count(*)::int from audit.samples), 1, 'and no other is taken');
select is(public.take_sample('[]', pg_temp.at(2)) ->> 'queue_depth', '3', 'the next two seconds have their own');
select is(
  (public.take_sample('[]', pg_temp.at(2)) ->> 'sampled_ms')::bigint, (extract(epoch from pg_temp.at(2)) * 1000)::bigint,
  'which says when it was taken'
);
select is(
  (select l ->> 'messages' from jsonb_array_elements(public.take_sample('[]', pg_temp.at(2)) -> 'lanes') l), '3',
  'its lanes are in it'
);

select is((select count(*)::int from audit.minute_samples), 0, 'a minute that is not over is not written');
select public.take_sample('[]', pg_temp.at(61));
select results_eq(
  'select at, samples, queue_depth, parts from audit.minute_samples',
  $$ values (pg_temp.at(0), 2, 3, (select audit.parts_of(look) from audit.samples where at = pg_temp.at(2))) $$,
  'the first sample of the next minute writes it: the highest of each number, and at a full hour all parts'
);
select is(
  (select parts -> 'pool gig' from audit.minute_samples), '[7, 3, 0]', 'a pool is what is left, held and sold'
);
select public.take_sample('[]', pg_temp.at(121));
select is(
  (select parts -> 'pool gig' from audit.minute_samples where at = pg_temp.at(60)), null, 'a part that did not change is left out'
);
select public.claim_resource_and_queue('gig', 'late');
select public.take_sample('[]', pg_temp.at(123));
select public.take_sample('[]', pg_temp.at(181));
select is((select parts -> 'pool gig' from audit.minute_samples where at = pg_temp.at(120)), '[6, 4, 0]', 'one that did is in');
select is(audit.changed_parts('{"a": [1], "b": [2]}', '{"a": [1]}'), '{"b": null}', 'one that is gone is null');

select public.take_sample('[]', pg_temp.at(3661));
select is((select min(at) from audit.samples), pg_temp.at(60), 'samples of an hour ago are gone');
select is((select count(*)::int from audit.minute_samples), 4, 'their minutes stay');

select is(
  jsonb_array_length(public.read_samples(pg_temp.at(0), pg_temp.at(7200), 60) -> 'rows'), 4, 'minutes are read by the minute'
);
select is(
  (public.read_samples(pg_temp.at(0), pg_temp.at(7200), 3600) -> 'rows' -> 0 ->> 'queue_depth')::int, 4,
  'and by longer steps: the highest of them'
);
select is(
  public.read_samples(pg_temp.at(0), pg_temp.at(600), 60, 'pool gig') -> 'part',
  jsonb_build_array(
    jsonb_build_array((extract(epoch from pg_temp.at(0)) * 1000)::bigint, '[7, 3, 0]'::jsonb),
    jsonb_build_array((extract(epoch from pg_temp.at(120)) * 1000)::bigint, '[6, 4, 0]'::jsonb)
  ),
  'a part is read by its changes'
);
select throws_ok(
  $$ select public.read_samples(now() - interval '30 days', now(), 60) $$, 'SL001', null, 'too many rows are refused'
);

update audit.minute_samples set at = now() - interval '31 days' where at = pg_temp.at(0);
insert into audit.minute_samples select (jsonb_populate_record(m, jsonb_build_object('at', now()))).* from audit.minute_samples m limit 1;
select public.prune_step(1000) from generate_series(1, 10);
select is((select min(at) > now() - interval '30 days' from audit.minute_samples), true, 'minutes go after 30 days');

select * from finish();
rollback;
