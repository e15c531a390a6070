-- The roles Supabase gives every project. Each is made only where missing; two sessions may try at once, also
-- from two databases of one cluster, which share their roles: the slower one finds the work done.
do $$
declare
  v_role text;
begin
  foreach v_role in array array[
    'anon nologin noinherit', 'authenticated nologin noinherit', 'service_role nologin noinherit bypassrls',
    'authenticator login noinherit'
  ] loop
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
    select count(*)
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

-- The password comes in as a setting of this session: alter role takes no parameters. Left out, as on a server
-- that manages its own passwords, nothing changes.
do $$
declare
  v_password constant text := nullif(current_setting('sluice.authenticator_password', true), '');
begin
  if v_password is not null then
    execute format('alter role authenticator password %L', v_password);
  end if;
end;
$$;
