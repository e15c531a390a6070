// Payment events as the handler sees them, played to it in any order within one database session.

import assert from 'node:assert/strict';
import type { Session } from '../support/sessions.ts';
import type { PaymentEvent } from './payment_sets.ts';

/** A row of webhook_events, as far as a handler reads it. */
export type EventRow = {
  provider: 'stripe';
  event_id: string;
  event_type: string;
  occurred_at: string;
  arrival?: number;
  payload: { api_version: string; data: { object: Record<string, unknown> } };
};

export function rowOf(event: PaymentEvent, number: number): EventRow {
  return {
    provider: 'stripe',
    event_id: `evt_${number}_RUN`,
    event_type: event.type,
    occurred_at: new Date(Date.UTC(2026, 2, 1, 12, 0, event.second)).toISOString(),
    payload: { api_version: event.version, data: { object: event.object } },
  };
}

export function applyEvent(session: Session, row: EventRow): Promise<string | null> {
  return session.value(
    'select webhook.apply_payment(jsonb_populate_record(null::public.webhook_events, $1::jsonb))',
    [JSON.stringify(row)],
  );
}

export function permutations(count: number): number[][] {
  if (count === 0) return [[]];
  return permutations(count - 1).flatMap((rest) =>
    Array.from({ length: count }, (_, at) => [...rest.slice(0, at), count, ...rest.slice(at)]),
  );
}

/**
 * pg_temp.play(events, order): applies the events to a payment of its own, in that order (numbers from 1, a number may
 * come again), and answers what came out. A payment of its own each time, because undoing would pile up dead rows under
 * one key.
 */
const PLAY = `
create sequence pg_temp.runs;
create function pg_temp.play(p_events jsonb, p_order int[]) returns text language plpgsql as $$
declare
  v_run text := nextval('pg_temp.runs');
  v_events jsonb := replace(p_events::text, 'RUN', v_run);
  v_event int;
begin
  foreach v_event in array p_order loop
    perform webhook.apply_payment(jsonb_populate_record(null::public.webhook_events,
      v_events -> (v_event - 1) || jsonb_build_object('arrival', array_position(p_order, v_event))));
  end loop;
  return (
    select format('%s, paid %s, refunded %s, balance %s', p.state, coalesce(p.amount::text, 'nothing'),
      p.refunded, coalesce((
        select string_agg(b.amount || ' ' || b.currency, ' ') from webhook.balance('ann_' || v_run) b
      ), 'none'))
    from public.payments p where p.provider = 'stripe' and p.object_id = 'pi_' || v_run
  );
end
$$`;

export async function preparePlay(session: Session): Promise<void> {
  await session.client.query(PLAY);
}

/** Every outcome that came out of these orders, with how many orders gave it. */
export async function playAll(
  session: Session,
  events: PaymentEvent[],
  orders: number[][],
): Promise<Record<string, number>> {
  const rows = await session.rows<{ outcome: string; orders: number }>(
    `select pg_temp.play($1::jsonb, array(select n::int from jsonb_array_elements_text(o.list) n)) as outcome,
       count(*)::int as orders
     from jsonb_array_elements($2::jsonb) o (list) group by 1`,
    [JSON.stringify(events.map((event, at) => rowOf(event, at + 1))), JSON.stringify(orders)],
  );
  return Object.fromEntries(rows.map(({ outcome, orders: count }) => [outcome, count]));
}

/** Runs `action` with the deployed function changed in one place, and puts the function back. */
export async function withChangedFunction<Result>(
  session: Session,
  name: string,
  from: string,
  to: string,
  action: () => Promise<Result>,
): Promise<Result> {
  const deployed = await session.value<string>(
    'select pg_get_functiondef(p.oid) from pg_proc p where p.oid = $1::regproc',
    [name],
  );
  assert(deployed.split(from).length === 2, `${name} does not contain "${from}" once`);
  await session.client.query(deployed.replace(from, () => to));
  try {
    return await action();
  } finally {
    await session.client.query(deployed);
  }
}
