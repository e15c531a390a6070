-- Ids that could pass for another one are refused, by name, and change nothing.
begin;
select plan(27);

insert into public.inventory_slots (pool_id) select 'ids' from generate_series(1, 30);
create temp table bad (id text, name text);
insert into bad values
  (' ann', 'a space before'), ('ann ', 'a space after'), (U&'\FF41nn', 'a full-width letter'),
  (U&'ann\200B', 'a zero-width space'), (U&'an\200Dn', 'a zero-width joiner'), (E'ann\n', 'a line feed'),
  (U&'a\00ADnn', 'a soft hyphen'), (U&'A\030A', 'a letter that is written as two'), (U&'\202Eann', 'a turn of direction'),
  (U&'\00A0ann', 'a space that does not break');

select tests.refuses(
  format('select public.claim_resource_and_queue(%L, %L, %L)', 'ids', b.id, 'r'), 'SL001', 'a user id with ' || b.name || ' is refused'
)
from bad b;
select tests.refuses(
  format('select public.claim_batch(array[''ids'', ''ids''], array[''ann'', ''bob''], array[''r'', %L])', b.id), 'SL001',
  'a request id with ' || b.name || ' is refused in a batch'
)
from bad b where b.name in ('a space after', 'a zero-width joiner', 'a full-width letter');
select isnt(
  public.claim_resource_and_queue('ids', U&'J\00F6rg M\00FCller', U&'\6CE8\6587 1'), null,
  'letters of any language, and spaces between them, are taken'
);

select * from finish();
rollback;
