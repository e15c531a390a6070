-- Events that are not for their endpoint: kept as skipped, with the reason, and without an effect.
begin;
select plan(20);

-- The reason why an event of this content is not for an endpoint with these settings.
create function pg_temp.misfit(p_livemode text, p_accounts text[], p_payload jsonb, p_provider text default 'stripe')
returns text
language sql
as $$
  select webhook.misfit(jsonb_populate_record(null::public.webhook_endpoints, jsonb_build_object(
    'provider', p_provider, 'livemode', p_livemode, 'accounts', p_accounts)), p_payload);
$$;

select is(pg_temp.misfit('live', '{}', '{"livemode": true}'), null, 'a live one at a live endpoint');
select is(pg_temp.misfit('test', '{}', '{"livemode": false}'), null, 'a test at an endpoint for tests');
select is(pg_temp.misfit('both', '{}', '{"livemode": false}'), null, 'either at one for both');
select is(pg_temp.misfit('live', '{}', '{}'), null, 'what is not said is not held against it');
select is(pg_temp.misfit('live', '{}', null), null, 'nor what is not there');
select isnt(pg_temp.misfit('live', '{}', '{"livemode": false}'), null, 'a test at a live endpoint');
select isnt(pg_temp.misfit('test', '{}', '{"livemode": true}'), null, 'a live one at an endpoint for tests');
select isnt(pg_temp.misfit('live', '{}', '{"livemode": "true"}'), null, 'what is not true is not live');
select isnt(pg_temp.misfit('live', '{}', '{"livemode": null}'), null, 'null neither');
select is(pg_temp.misfit('live', '{}', '{"account": null}'), null, 'no account is our own');
select isnt(pg_temp.misfit('live', '{}', '{"account": "acct_1"}'), null, 'another one is not');
select is(pg_temp.misfit('live', '{acct_2,acct_1}', '{"account": "acct_1"}'), null, 'unless it is on the list');
select is(pg_temp.misfit('live', '{acct_1}', '{}'), null, 'beside which our own still counts');
select isnt(pg_temp.misfit('live', '{acct_1}', '{"context": "acct_2"}'), null, 'a thin event says it elsewhere');
select isnt(pg_temp.misfit('live', '{}', '{"account": {"id": "acct_1"}}'), null, 'an account that is not a text is not one of ours');
select is(pg_temp.misfit('live', '{}', '{"livemode": false, "account": "x"}', 'twilio'), null, 'only Stripe says such things');

select webhook.add_endpoint('shop', 'stripe', '{A}', 'inline', '{}', 'ann');
create function pg_temp.record(variadic p_bodies text[])
returns text
language sql
as $$
  select string_agg(r.outcome || ' ' || r.status, ', ' order by r.ordinal)
  from webhook.find_endpoint('shop') f
  cross join lateral webhook.record_events(
    array_fill(f.webhook_id, array[cardinality(p_bodies)]), array(select b::jsonb ->> 'id' from unnest(p_bodies) b), null,
    null, null, array(select encode(convert_to(b, 'UTF8'), 'base64') from unnest(p_bodies) b), null,
    array(select md5(b) from unnest(p_bodies) b), null, null, null
  ) r;
$$;
select is(
  pg_temp.record('{"id": "t", "livemode": false}', '{"id": "l", "livemode": true}'), 'skipped skipped, recorded pending',
  'a batch with both'
);
select is(
  pg_temp.record('{"id": "l", "livemode": true}', '{"id": "t", "livemode": false}', '{"id": "a", "account": "acct_1"}'),
  'duplicate pending, duplicate skipped, skipped skipped', 'and with known ones'
);
select results_eq(
  $$ select event_id, error, payload is not null, processed_at is not null, next_attempt_at is null, attempts
     from public.webhook_events where status = 'skipped' order by event_id $$,
  $$ values ('a', 'account acct_1 is not one of the endpoint''s', true, true, true, 0),
            ('t', 'test event: the endpoint takes live ones', true, true, true, 0) $$,
  'they are kept, have ended, and say why'
);

create function pg_temp.replay()
returns text
language sql
as $$
  select string_agg(r.event_id || ' ' || r.outcome, ', ' order by r.event_id)
  from webhook.replay_events(array(select id from public.webhook_events where status = 'skipped'), 'bob') r;
$$;
select is(
  pg_temp.replay() || '; ' || (
    select pg_temp.replay() from webhook.change_endpoint('shop', '{"livemode": "both"}', 'bob')
  ), 'a misfit, t misfit; a misfit, t replayed', 'a replay takes what is for the endpoint now, and nothing else'
);

select * from finish();
rollback;
