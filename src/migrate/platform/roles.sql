-- The roles Supabase gives every project. `sluice migrate --roles` prints this script, for a server whose superuser makes the
-- roles and leaves the rest to the owner of the databases. Each is made only where missing; two sessions may try at once,
-- also from two databases of one server, which share their roles: the slower one finds the work done.
do $$
declare
  v_role text;
begin
  foreach v_role in array array[
    'anon nologin noinherit', 'authenticated nologin noinherit', 'service_role nologin noinherit bypassrls',
    'authenticator login noinherit'
  ] loop
    -- A role that may not make one must not even try.
    continue when exists (select from pg_catalog.pg_roles r where r.rolname = split_part(v_role, ' ', 1));
    begin
      execute 'create role ' || v_role;
    exception when duplicate_object or unique_violation then
      null;
    end;
  end loop;
end;
$$;

do $$
begin
  if (
    select count(distinct m.roleid)
    from pg_catalog.pg_auth_members m
    where m.member = 'authenticator'::regrole
      and m.roleid in ('anon'::regrole, 'authenticated'::regrole, 'service_role'::regrole)
  ) < 3 then
    grant anon, authenticated, service_role to authenticator;
  end if;
exception when unique_violation then
  null;
end;
$$;
