// What the controls break, as SQL for one of the databases.

/**
 * Changes one place of a function and leaves the rest as it is, so that a control breaks what it says and nothing else. Fails
 * where that place is gone: then the control has to follow the function.
 */
const PATCH = `
create or replace function pg_temp.patch(p_function regprocedure, p_from text, p_to text)
returns void
language plpgsql
as $$
declare
  v_source text := pg_catalog.pg_get_functiondef(p_function);
begin
  if pg_catalog.strpos(v_source, p_from) = 0 then
    raise exception 'the control does not fit: % has no "%"', p_function, p_from;
  end if;
  execute pg_catalog.replace(v_source, p_from, p_to);
end
$$;
`;

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;
export const patch = (...texts: [functionName: string, from: string, to: string]): string =>
  `select pg_temp.patch(${texts.map(quoted).join(', ')});`;
export const script = (...statements: string[]): string => [PATCH, ...statements].join('\n');

/** A worker that finishes a message finishes it, whether or not another one has it by now. */
export const FENCE_OFF = script(
  patch(
    'intake.finish_committed(bigint[], int[], text[])',
    'and ((q.msg_id, q.read_ct) in (select * from unnest(p_msg_ids, p_read_cts))) is true',
    '',
  ),
  patch('intake.held_deliveries(bigint[], int[], text[], text[], int[])', ' and t.read_ct = q.read_ct', ''),
);

/**
 * Breaks nothing: a worker that commits what is committed already takes its time, so that it still holds the message when
 * the first one wakes up.
 */
export const SLOW_SECOND_COMMIT = script(
  patch(
    'public.finalize_batch(jsonb)',
    `exception when unique_violation or sqlstate 'SL099' then\n    null;`,
    `exception when unique_violation or sqlstate 'SL099' then\n    perform pg_catalog.pg_sleep(3.5);`,
  ),
);

/**
 * The reaper as the requirements had it: a RESERVED slot that is old enough is for sale again, whether or not a buyer waits
 * for it. And no constraint behind it: there a slot's row is all that says whose it is.
 */
export const PRD_REAPER = `
drop index public.one_live_claim_per_slot;

create function public.prd_reaper()
returns void
language sql
set search_path = ''
as $$
  update public.inventory_slots s
  set status = 'AVAILABLE', locked_by = null, locked_at = null
  where s.status = 'RESERVED' and s.locked_at < now() - interval '500 milliseconds';
$$;

select cron.schedule('prd_reaper', '1 seconds', 'select public.prd_reaper()');
`;

/** ON CONFLICT DO NOTHING, and the answer is that all is well: another claim's ticket counts as one's own. */
export const DO_NOTHING = script(patch('public.finalize_batch(jsonb)', "then 'conflict'", "then 'already'"));

/** A retry is a new request. */
export const NO_REQUEST_ID = script(
  'drop index public.one_claim_per_request;',
  ...['claim_of_request(uuid)', 'usual_requests(intake.claim_request[])'].map((name) =>
    patch(`intake.${name}`, 'where c.request_key =', 'where false and c.request_key ='),
  ),
);

/** After a crash the slots stay away: the cache is believed. */
export const NO_REBUILD = script(
  patch(
    'intake.rebuild_inventory(text)',
    'where m.pool_id = p_pool_id',
    'where false and m.pool_id = p_pool_id',
  ),
);

/** After a crash the pool is seeded again, as by a person who finds the table empty: what was sold is sold again. */
export const FRESH_SLOTS = script(
  patch(
    'intake.rebuild_inventory(text)',
    '    m.slot_id,\n    v_pool_id,',
    '    gen_random_uuid(),\n    v_pool_id,',
  ),
  patch('intake.rebuild_inventory(text)', "'CONSUMED'", "'AVAILABLE'"),
  patch('intake.rebuild_inventory(text)', "'RESERVED'", "'AVAILABLE'"),
);

/** One lane for all pools: a hook that is slow or down keeps the messages of all pools from being taken. */
export const ONE_LANE = `
create function public.one_lane()
returns trigger
language plpgsql
set search_path = ''
as $$
begin
  new.lane := 1;
  return new;
end
$$;

create trigger one_lane before insert on public.engine_config for each row execute function public.one_lane();
`;

/** The queue is as fast as the slots, and as gone after a crash. */
export const UNLOGGED_QUEUE = 'alter table pgmq.q_intake_queue set unlogged;';

/** Each event takes its effect, also when another has told the same fact. */
export const FACTS_COUNTED_TWICE = script(
  patch(
    'webhook.merge_payment(public.payments, public.payments)',
    'greatest(p_known.captured, p_told.captured)',
    'p_known.captured + p_told.captured',
  ),
);

/** The audit row is written apart from the action, and now and then not at all. */
export const AUDIT_APART = script(
  patch(
    'intake.write_audit(text, text, bigint, text, jsonb, text)',
    `insert into audit.audit_logs (actor, action, subject, reason, details)
  values (p_actor, p_action, 'dead letter ' || p_msg_id, p_reason, jsonb_build_object(
    'outcome', p_outcome, 'claim_id', p_letter -> 'claim_id', 'pool_id', p_letter -> 'pool_id', 'letter', p_letter
  ));`,
    `insert into audit.audit_logs (actor, action, subject, reason)
  select p_actor, p_action, 'dead letter ' || p_msg_id, p_reason where random() < 0.5;`,
  ),
);

/** An outage of the ledger uses up the attempts of the messages that are on their way. */
export const OUTAGES_COUNTED = script(
  'alter table public.engine_config alter column max_retries set default 3;',
  patch(
    'intake.lease_messages(bigint[], int)',
    "1 + case when t.message ? 'tried' then least(intake.count_in(t.message, 'tried'), t.read_ct - 1) else 0 end",
    't.read_ct',
  ),
);

/** An event whose lease ran out once is lost for good: that its worker or the database was away is the event's fault. */
export const TAKEOVERS_COUNTED = script(
  patch(
    'webhook.take_first(uuid[])',
    'c_takeovers_max constant int := 10',
    'c_takeovers_max constant int := 1',
  ),
);

/**
 * A worker that marks an event marks it, whether or not another one has it by now. And a worker that has taken one over takes
 * its time before that, so that the first one wakes up meanwhile: that breaks nothing.
 */
export const WEBHOOK_LATE_MARK = script(
  patch('webhook.hold_event(uuid, uuid)', 'and e.lease_token = p_lease_token', ''),
  patch('webhook.held_tasks(uuid[], uuid[])', 'and e.lease_token = t.lease_token', ''),
  patch(
    'webhook.held_tasks(uuid[], uuid[])',
    'begin\n  perform from',
    `begin
  perform pg_catalog.pg_sleep(3.5) from public.webhook_events e
    where e.id = any (p_ids) and e.lease_token = any (p_lease_tokens) and e.takeovers > 0;
  perform from`,
  ),
);
