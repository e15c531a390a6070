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
