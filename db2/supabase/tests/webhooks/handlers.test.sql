-- Handlers can be listed and removed, and those that no worker serves are reported.
begin;
select plan(9);

insert into public.webhook_handlers (provider, event_type, webhook_id, kind, name) values
  ('shop', 'old*', null, 'typescript', 'leftover'), ('shop', 'older', null, 'typescript', 'leftover'),
  ('shop', '*', null, 'sql', 'app.all');
insert into public.webhook_events (webhook_id, provider, event_id, event_type, payload, next_attempt_at)
select '00000000-0000-4000-8000-000000000001', 'shop', 'e' || n, t, '{}', now() - make_interval(secs => s)
from (values (1, 'old.one', 100), (2, 'old.one', 90), (3, 'older', 80), (4, 'old.one', 10), (5, 'new', 100))
  as v (n, t, s);

select results_eq(
  $$ select event_type, kind, name from webhook.list_handlers() where provider = 'shop' $$,
  $$ values ('*', 'sql', 'app.all'), ('old*', 'typescript', 'leftover'), ('older', 'typescript', 'leftover') $$,
  'they are listed'
);
select results_eq(
  $$ select name, events, oldest_due_sec between 100 and 200 from webhook.missing_handlers(60) $$,
  $$ values ('leftover', 3::bigint, true) $$, 'what has waited too long for a handler in TypeScript is told'
);
select is_empty($$ select * from webhook.missing_handlers(1000) $$, 'what has not is not');
select throws_ok($$ select webhook.remove_handler('leftover', null) $$, '23502', null, 'an action has an actor');
select is(webhook.remove_handler('leftover', 'ann', 'gone'), 2, 'all types of a handler are removed');
select is(webhook.remove_handler('leftover', 'ann', 'gone'), 0, 'once');
select results_eq(
  $$ select actor, subject, reason, jsonb_array_length(details -> 'handlers') from audit.audit_logs
     where action <> 'rule_change' $$,
  $$ values ('ann', 'webhook handler leftover', 'gone', 2) $$, 'with one audit row'
);
select is_empty($$ select * from webhook.missing_handlers(60) $$, 'then nothing waits for it any more');
select is(
  (select count(*)::int from tests.take(10) t where t.handler_name = 'app.all'), 5, 'the next best takes over'
);

select * from finish();
rollback;
