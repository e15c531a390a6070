-- What buyers read about a pool: set by names, kept with an audit row, shown beside the status.
begin;
select plan(22);

select public.pool_create('gig', 1, '{}', 'olga');
select public.set_pool_details('gig', '{"title": "Opening night", "starts_at": "2026-03-01T19:00:00+01:00", "place": "Hall 2"}', 'olga', 'new');
create temp table before as select tests.state() as state;
select is(
  public.set_pool_details('gig', '{"title": "Opening night"}', 'olga') ->> 'place', 'Hall 2', 'the same again is answered'
);
select is(tests.state(), (select state from before), 'and changes nothing: no audit row either');
select tests.refuses($$ select public.set_pool_details('nowhere', '{"title": "x"}', 'olga') $$, 'SL002', 'no such pool');
select tests.refuses($$ select public.set_pool_details('gig', '{"name": "x"}', 'olga') $$, 'SL001', 'an unknown name');
select tests.refuses($$ select public.set_pool_details('gig', '[]', 'olga') $$, 'SL001', 'no object');
select tests.refuses(
  $$ select public.set_pool_details('gig', '{"picture_url": "javascript:alert(1)"}', 'olga') $$, 'SL001', 'a picture that is not an address'
);
select tests.refuses($$ select public.set_pool_details('gig', '{"time_zone": "Mars/Olympus"}', 'olga') $$, 'SL001', 'a zone that is none');
select tests.refuses(
  $$ select public.set_pool_details('gig', '{"time_zone": "XYZ3"}', 'olga') $$, 'SL001', 'a zone that is one to Postgres alone'
);
select tests.refuses($$ select public.set_pool_details('gig', '{"starts_at": "soon"}', 'olga') $$, 'SL001', 'a time that is none');
select is(
  (select s.details from public.pool_status('gig') s),
  '{"title": "Opening night", "starts_at": "2026-03-01T18:00:00+00:00", "time_zone": null, "place": "Hall 2", "picture_url": null,
    "text": null}'::jsonb,
  'they are shown with the status'
);
select is(
  public.set_pool_details('gig', '{"place": null, "picture_url": "https://example.com/a.png", "text": "Doors at six"}', 'olga')
    - 'starts_at',
  '{"title": "Opening night", "time_zone": null, "place": null, "picture_url": "https://example.com/a.png", "text": "Doors at six"}'::jsonb,
  'null takes one away'
);
select results_eq(
  $$ select actor, action, reason from audit.audit_logs where subject = 'pool gig' and action = 'pool_details' order by id $$,
  $$ values ('olga', 'pool_details', 'new'), ('olga', 'pool_details', null) $$, 'each change has an audit row'
);
select is((select details from public.pool_status('nowhere')), null, 'a pool that is not there has none');

-- What a ticket is for, and what it calls its slot.
select public.set_pool_details('gig', '{"time_zone": "Europe/Berlin", "place": "Hall 2"}', 'olga');
select public.pool_change('gig', '{}', 1, 'olga', null, null, '{"Row 7, seat 1"}');
select results_eq(
  $$ select d.title, d.starts_at, d.time_zone, d.place, d.label
     from public.slot_manifest m, public.seat_details('gig', m.slot_id) d where m.pool_id = 'gig' order by m.sale_order $$,
  $$ values ('Opening night', '2026-03-01T18:00:00Z'::timestamptz, 'Europe/Berlin', 'Hall 2', null),
    ('Opening night', '2026-03-01T18:00:00Z'::timestamptz, 'Europe/Berlin', 'Hall 2', 'Row 7, seat 1') $$,
  'a seat has the details of its pool, and its label'
);
select is_empty($$ select from public.seat_details('nowhere', gen_random_uuid()) $$, 'a seat of no pool has none');

select * from finish();
rollback;
