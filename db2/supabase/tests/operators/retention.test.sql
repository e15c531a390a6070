-- Payloads of events, side effects and calls go after 90 days; keys stay.
begin;
select plan(12);

create function pg_temp.pruned()
returns text
language plpgsql
as $$
declare
  v_all text := '';
  v_part text;
begin
  loop
    select what || ' ' || gone into v_part from public.prune_step(2);
    exit when v_part is null;
    v_all := v_all || v_part || ', ';
  end loop;
  return v_all;
end
$$;

select results_eq(
  'select what, keep_days from public.retention_rules()',
  $$ values ('webhook_payloads', 90), ('side_effects', 90), ('calls', 90), ('samples', 30) $$, 'these are the rules of a new ledger'
);
select webhook.add_endpoint('plain', 'shop', '{A}', 'queued', '{}', 'ann');
select webhook.add_endpoint('long', 'shop', '{A}', 'queued', '{"keep_payload_days": 36500}', 'ann');
insert into public.webhook_events (webhook_id, provider, event_id, status, received_at, payload, raw_body)
select coalesce((select f.webhook_id from webhook.find_endpoint(t.name) f), md5('gone')::uuid), 'shop', t.event_id,
  t.status::public.webhook_event_status, now() - make_interval(days => t.days), '{}', 'raw'
from (values
  ('plain', 'old', 'success', 91), ('plain', 'young', 'success', 89), ('plain', 'dead', 'dead_letter', 400),
  ('plain', 'open', 'pending', 400), ('long', 'kept', 'success', 400), ('gone', 'orphan', 'skipped', 91)
) t (name, event_id, status, days);
insert into public.webhook_side_effects (provider, event_id, payload, created_at)
select 'shop', n::text, '{}', now() - make_interval(days => n) from generate_series(88, 92) n;
select * from calls.record_calls('{ops,ops}', '{one,two}', '{x,x}', '{"{\"a\": 1}","{}"}', array[now(), now()], '{s1,s2}');
update public.calls set received_at = now() - interval '91 days' where event_id = 'one';

select is(pg_temp.pruned(), 'webhook_payloads 2, side_effects 2, calls 1, ', 'what is older goes, in parts');
select results_eq(
  $$ select event_id from public.webhook_events where payload is not null order by event_id $$,
  $$ values ('dead'), ('kept'), ('open'), ('young') $$,
  'an endpoint''s own number goes before the rule; what has not ended stays; an endpoint that is gone has the rule too'
);
select is((select count(*)::int from public.webhook_side_effects where payload is not null), 3, 'side effects stay without payloads');
select is((select count(*)::int from public.webhook_side_effects), 5, 'all of them');
select is((select payload from public.calls where event_id = 'one'), null, 'so do calls');
select is(pg_temp.pruned(), '', 'a second run finds nothing');
select results_eq(
  $$ select c.outcome from calls.record_calls('{ops,ops}', '{one,one}', '{x,y}', '{"{\"a\": 1}","{}"}',
       array_fill((select occurred_at from public.calls where event_id = 'one'), array[2]), '{signed_again,and_again}') c order by ordinal $$,
  $$ values ('duplicate'), ('event_conflict') $$,
  'a call that was pruned is known when it is signed and sent again; one of another kind is not the same'
);
select is(public.set_retention('webhook_payloads', 400, 'ann'), true, 'a rule can be changed');
select is(pg_temp.pruned(), '', 'to a longer time');
select public.set_retention('webhook_payloads', 30, 'ann');
select is(pg_temp.pruned(), 'webhook_payloads 1, ', 'and to a shorter one');

select is(current_setting('synchronous_commit'), 'off', 'the transaction of a part does not wait for the disk');

select * from finish();
rollback;
