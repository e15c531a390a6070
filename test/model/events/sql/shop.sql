-- A handler whose effects can be counted: it has no guard of its own, so a second effect would show.
create schema app;
create table app.effects (event_id text not null);
create table app.mood (errcode text);
insert into app.mood values (null);
create function app.act(p_event public.webhook_events) returns text language plpgsql as $$
declare
  v_errcode text := (select m.errcode from app.mood m);
begin
  insert into app.effects values (p_event.event_id);
  if v_errcode is not null then
    raise exception 'as told' using errcode = v_errcode;
  end if;
  return null;
end
$$;
insert into public.webhook_handlers (provider, event_type, kind, name) values ('shop', 'act', 'sql', 'app.act');
select webhook.add_endpoint('shop', 'shop', '{A}', 'queued', '{"max_attempts": 3, "lease_sec": 3600}', 'ada');
select webhook.add_endpoint('stripe', 'stripe', '{A}', 'queued', '{"max_attempts": 3, "lease_sec": 3600}', 'ada');
