-- What else a Supabase project starts out with: the extensions schema, the way into public for the roles of
-- the API, and the (empty) publication that Realtime listens to.
create schema if not exists extensions;

do $$
begin
  if not has_schema_privilege('anon', 'extensions', 'usage') then
    grant usage on schema extensions to anon, authenticated, service_role;
  end if;
  if not has_schema_privilege('service_role', 'public', 'usage')
    or not has_schema_privilege('anon', 'public', 'usage')
    or not has_schema_privilege('authenticated', 'public', 'usage') then
    grant usage on schema public to anon, authenticated, service_role;
  end if;
  if not exists (select from pg_catalog.pg_publication where pubname = 'supabase_realtime') then
    create publication supabase_realtime;
  end if;
end;
$$;
