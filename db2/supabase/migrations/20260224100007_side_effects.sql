-- WEBHOOKS, side effects. Events that are only kept, and a place for effects of your own to begin.

-- That an event took effect, once: the effect of providers whose events are only kept, and a place for yours to begin.
create table if not exists public.webhook_side_effects (
  id uuid primary key default gen_random_uuid(),
  provider text not null,
  event_id text not null,
  payload jsonb,
  created_at timestamptz not null default now(),
  constraint one_side_effect_per_event unique (provider, event_id)
);

-- Promise: one row for this event. Second call: "effect already taken", no second row. Locks: the key of the event.
create function webhook.apply_side_effect(p_event public.webhook_events) returns text
language plpgsql set search_path = '' as $$
begin
  insert into public.webhook_side_effects (provider, event_id, payload)
  values (p_event.provider, p_event.event_id, p_event.payload)
  on conflict (provider, event_id) do nothing;
  return case when not found then 'effect already taken' end;
end
$$;

insert into public.webhook_handlers (provider, event_type, kind, name)
select h.provider, h.event_type, 'sql', 'webhook.apply_side_effect'
from (values
  ('twilio', '*'), ('whatsapp', '*'), ('daily', 'participant*'), ('daily', 'meeting*'), ('daily', 'recording*'),
  ('daily', 'transcript*'), ('daily', 'streaming*'), ('daily', 'waiting-participant*')
) as h (provider, event_type);

alter table public.webhook_side_effects enable row level security;
