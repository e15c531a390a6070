-- What a pool may be called: whatever a path can hold, percent-encoded, and nothing else.
begin;
select plan(31);

create function pg_temp.refuses(p_sql text, p_code text, p_message text, p_name text)
returns setof text
language plpgsql
as $$
declare
  v_before text := tests.state();
begin
  return next throws_like(p_sql, p_message, p_name);
  return next throws_ok(p_sql, p_code, null::text, p_name || ', with its code');
  return next is(tests.state(), v_before, p_name || ', and nothing changes');
end
$$;

select lives_ok(
  format($$ with pool as (insert into public.engine_config (pool_id) values (%L))
    insert into public.inventory_slots (pool_id) values (%1$L) $$, id),
  format('a pool may be called %s', left(id, 20))
)
from unnest(array[
  'a b/c', 'ünïcode', '...', '.a', '%2e', '?#&=+;', U&'\+01F3AB', repeat(U&'\+01F3AB', 200), U&'\00A0', '<b>"'
]) id;
select is(
  (select count(*)::int from public.pool_list() where capacity = 1 and pool_id in ('a b/c', 'ünïcode', '...', '?#&=+;')), 4,
  'and is listed under that name'
);

select pg_temp.refuses(
  format('insert into public.engine_config (pool_id) values (%L)', id), '23514', '%' || rule || '%',
  format('no pool is called %s, which is refused by name', name)
)
from (values
  ('..', 'two dots', 'pool_id_is_not_dots_and_has_no_control_characters'),
  ('a' || chr(10), 'a line feed', 'pool_id_is_not_dots_and_has_no_control_characters'),
  ('', 'nothing', 'has_1_to_200_characters')
) v (id, name, rule);
select throws_ok(
  format('insert into public.inventory_slots (pool_id) values (%L)', id), '23514', null,
  format('nor by its slots alone: %s', name)
)
from (values
  ('.', 'a dot'), (chr(1), 'the first control character'), ('a' || chr(31), 'the last of the first'), (chr(127), 'delete'),
  (chr(133), 'one of the second row'), (repeat('x', 201), '201 characters')
) v (id, name);
select throws_ok(
  $$ update public.engine_config set pool_id = '..' where pool_id = 'a b/c' $$, '23514', null, 'nor by another name later'
);
select pg_temp.refuses(
  $$ select public.pool_create('..', 1, '{}', 'olga') $$, 'SL001', '%pool_id_is_not_dots%', 'an operator is told the same'
);

-- Generated types name the base of a domain, and of a domain over a domain they know only "unknown".
select is_empty(
  $$ select t.oid::regtype from pg_type t join pg_type b on b.oid = t.typbasetype
     where t.typtype = 'd' and b.typtype = 'd' and t.typnamespace in ('public'::regnamespace, 'intake'::regnamespace) $$,
  'no domain is based on a domain'
);
select * from finish();
rollback;
