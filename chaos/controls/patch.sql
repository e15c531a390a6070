-- Changes one place of a function and leaves the rest as it is, so that a control breaks what it says and nothing else. Fails
-- where that place is no more: then the control has to follow the function.
create function pg_temp.patch(p_function regprocedure, p_from text, p_to text)
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
