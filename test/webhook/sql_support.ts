// Events and a handler whose effects can be counted: it has no guard of its own, so a second effect would show.

import type { Session } from '../support/sessions.ts';

export type Lease = { id: string; lease_token: string; event_id: string };
export type Recorded = { ordinal: number; outcome: string; status: string };

/** An endpoint "shop", whose events of type "act" add a row to app.effects, lock an account or raise, as they say. */
export async function openShop(session: Session): Promise<string> {
  await session.client.query(`
    create schema app;
    create table app.effects (event_id text not null);
    create table app.accounts (account int primary key, events int not null default 0);
    insert into app.accounts (account) values (1), (2);
    create function app.act(p_event public.webhook_events) returns text language plpgsql as $$
    begin
      insert into app.effects values (p_event.event_id);
      update app.accounts a set events = a.events + 1 where a.account = (p_event.payload ->> 'account')::int;
      if p_event.payload ? 'raise' then
        raise exception 'as told' using errcode = p_event.payload ->> 'raise';
      end if;
      return null;
    end $$;
    insert into public.webhook_handlers (provider, event_type, kind, name) values ('shop', 'act', 'sql', 'app.act');
  `);
  return session.value<string>(
    `select webhook.add_endpoint('shop', 'shop', '{OPS_SITE_SECRET}', 'queued', '{}', 'test')`,
  );
}

export function record(
  session: Session,
  webhookId: string,
  eventIds: readonly string[],
  payload = '{}',
  dedupeHashes: readonly string[] | null = null,
): Promise<Recorded[]> {
  return session.rows<Recorded>(
    `select r.ordinal, r.outcome, r.status
     from webhook.record_events(
       array_fill($1::uuid, array[cardinality($2::text[])]), $2, array_fill('act'::text, array[cardinality($2)]), null,
       array_fill($3::text, array[cardinality($2)]), null, null, array_fill($3::text, array[cardinality($2)]), $4, null,
       null
     ) r order by r.ordinal`,
    [webhookId, eventIds, payload, dedupeHashes],
  );
}

/** Up to `limit` of each lane that needs no TypeScript. */
export const take = (session: Session, limit = 100): Promise<Lease[]> =>
  session.rows<Lease>(
    `select t.id, t.lease_token, t.event_id
     from (
       select array_agg(l.lane) as lanes, array_agg($1::int) as wanted from webhook.event_lanes() l
       where l.kind is distinct from 'typescript'
     ) l
     cross join lateral webhook.take_events(l.lanes, l.wanted) t`,
    [limit],
  );

export const takeSuspect = (session: Session): Promise<Lease[]> =>
  session.rows<Lease>(
    `select id, lease_token, event_id
     from webhook.take_suspect(array(select lane from webhook.event_lanes()))`,
  );

export async function process(session: Session, leases: readonly Lease[]): Promise<string[]> {
  const rows = await session.rows<{ outcome: string }>('select outcome from webhook.process_events($1, $2)', [
    leases.map(({ id }) => id),
    leases.map(({ lease_token }) => lease_token),
  ]);
  return rows.map(({ outcome }) => outcome);
}

export const effectsOf = (session: Session, eventId: string): Promise<number> =>
  session.value<number>('select count(*)::int from app.effects where event_id = $1', [eventId]);

export const statusOf = (session: Session, eventId: string): Promise<string> =>
  session.value<string>('select status::text from public.webhook_events where event_id = $1', [eventId]);

/** The clock of a lease, moved instead of waited for. */
export const endLease = (session: Session, eventId: string): Promise<unknown> =>
  session.client.query(
    `update public.webhook_events set lease_until = now(), next_attempt_at = now() where event_id = $1`,
    [eventId],
  );
