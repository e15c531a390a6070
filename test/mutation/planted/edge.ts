// Bugs of Edge Functions and of databases without our workers, as they would come back.

import type { Bug } from '../bugs.ts';

export const EDGE: readonly Bug[] = [
  {
    name: 'edge-work-in-a-chain',
    was: 'One call of bridge-worker did its work in a chain: while Stripe hung, or the queue was long, payments, refunds and the inbox waited, and one failure stopped all that came after it',
    file: 'db1/supabase/functions/_shared/edge/bridge_worker.ts',
    from: '  const first = await carry(part);\n  const earlier = await before;\n',
    to: '  const earlier = await before;\n  const first = await carry(part);\n',
    test: 'test/edge/guard.test.ts',
    finds:
      'while Stripe hangs the bridge worker carries all else: payments, sessions to find, the queue, the inbox',
  },
  {
    name: 'edge-no-preflight',
    was: 'No page of another origin could call the Edge Function claims on hosted Supabase: it answered the preflight 405 without CORS headers, which only the gateway of npm start added',
    file: 'db1/supabase/functions/_shared/edge/handler.ts',
    from: '    if (isForPages && isPreflight(request)) return answerPreflight(request, methods);\n',
    to: '',
    test: 'test/edge/checkout.test.ts',
    finds: 'can be called by a page of another origin, which reads what is refused as well',
  },
  {
    name: 'drain-refused-in-silence',
    was: 'A wrong or missing service role key stopped all tickets on Supabase and nothing said so: the cron job succeeded once its request was queued',
    file: 'db1/supabase/migrations/20260224100002_intake_engine_cron.sql',
    from: '  elsif v_last.status_code between 200 and 299 then',
    to: '  elsif v_last.status_code is not null then',
    test: 'db1/supabase/tests/drain/trigger.test.sql',
    finds: 'after a refusal the job fails, and says which',
  },
  {
    name: 'cron-thousand-events',
    was: 'Without a worker DB2 processed at most 1,000 events a minute',
    file: 'db2/supabase/migrations/20260224100005_webhook_leases.sql',
    from: 'create procedure webhook.work(p_limit int default null)',
    to: 'create procedure webhook.work(p_limit int default 1000)',
    test: 'test/webhook/lanes.test.ts',
    finds: 'are not needed where cron does the work: one call takes all that is due',
  },
  {
    name: 'cron-hung-handler',
    was: 'Without a worker one handler that hung held up the events of all others',
    file: 'db2/supabase/migrations/20260224100005_webhook_leases.sql',
    from: '      exception when query_canceled or others then\n',
    to: '      exception when query_canceled or others then\n        raise;\n',
    test: 'test/webhook/lanes.test.ts',
    finds: 'events that hang keep up no other handler',
  },
  {
    name: 'ledger-without-cron',
    was: 'By the guide for Supabase no process took queued webhook events: no migration of DB2 switched pg_cron on, so none of its jobs was scheduled, and neither doctor nor Health knew of them',
    file: 'db2/supabase/migrations/20260224100000_db2_ledger.sql',
    from: '    create extension pg_cron;',
    to: '    null;',
    test: 'test/scheduler/ledger_cron.test.ts',
    finds: 'has the jobs that do what a worker would',
  },
  {
    name: 'edge-is-no-worker',
    was: '`serve` beside Edge Functions and pg_cron told every minute that work waits and no worker is connected',
    file: 'db1/supabase/migrations/20260224100012_console.sql',
    from: "'bridge_workers', intake.is_drained()::int + (",
    to: "'bridge_workers', (",
    test: 'db1/supabase/tests/console/live.test.sql',
    finds: 'one that answers them counts as one',
  },
];
