-- Schema auth with the three functions that policies and our own functions call. Where the schema exists, as
-- on Supabase, it belongs to the platform and is left alone.
do $do$
begin
  if to_regnamespace('auth') is not null then
    return;
  end if;

  create schema auth;
  grant usage on schema auth to anon, authenticated, service_role;

  -- All claims of the caller's token, null without one.
  create function auth.jwt() returns jsonb
  language sql stable set search_path = '' as $$
    select coalesce(
      nullif(current_setting('request.jwt.claim', true), ''),
      nullif(current_setting('request.jwt.claims', true), '')
    )::jsonb;
  $$;

  -- The caller's id, null without one: from the single claim older gateways set, else from the token's claims.
  create function auth.uid() returns uuid
  language sql stable set search_path = '' as $$
    select coalesce(nullif(current_setting('request.jwt.claim.sub', true), ''), auth.jwt() ->> 'sub')::uuid;
  $$;

  -- The role named in the caller's token, null without one.
  create function auth.role() returns text
  language sql stable set search_path = '' as $$
    select coalesce(nullif(current_setting('request.jwt.claim.role', true), ''), auth.jwt() ->> 'role');
  $$;
end;
$do$;
