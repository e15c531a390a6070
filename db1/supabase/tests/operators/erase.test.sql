-- An erasure in the intake: what is replaced, in which order, and what it refuses.
begin;
select plan(34);

-- Names in texts and in JSON.
select is(audit.text_without('ann is ann, not joann or ann_b', 'ann', 'X'), 'ann is ann, not joann or ann_b', 'three letters do not tell');
select is(audit.text_without('anna: (anna) not joanna, anna_b or anna2', 'anna', 'X'), 'X: (X) not joanna, anna_b or anna2', 'whole words only');
select is(audit.text_without('tel:+4915', '+4915', 'X'), 'tel:X', 'an id need not begin with a letter');
select is(audit.text_without('a.b*c[d]\e$', 'a.b*c[d]\e$', 'X'), 'X', 'nothing in an id is a pattern');
select is(audit.text_without('axb', 'a.b!', 'X'), 'axb', 'not even a dot');
select is(audit.text_without(null, 'anna', 'X'), null, 'nothing is nothing');
select is(
  audit.json_without('{"user_id": "anna", "to": ["anna", {"anna": "dear anna,"}], "n": 5}', 'anna', 'X'),
  '{"user_id": "X", "to": ["X", {"X": "dear X,"}], "n": 5}', 'every text of a JSON, and its fields'
);
select is(
  audit.json_without('{"user_id": 1234567, "amount": 1234567}', '1234567', 'X'), '{"user_id": "X", "amount": 1234567}',
  'a number is a user where the field says so'
);
select is(audit.json_without('{"user_id": "7", "n": "7"}', '7', 'X'), '{"user_id": "X", "n": "7"}', 'so is an id that does not tell');
select is(audit.json_without('{"a": "say \"anna\""}', 'anna', 'X'), '{"a": "say \"X\""}', 'also in quotes');
select is(audit.json_without('{"a": 1.50, "b": "bob"}', 'anna', 'X'), '{"a": 1.50, "b": "bob"}', 'else nothing changes');

insert into public.inventory_slots (pool_id) select 'erase' from generate_series(1, 6);
select public.claim_resource_and_queue('erase', 'anna', 'order 1 of anna');
select public.claim_resource_and_queue('erase', 'bob', null);
select ordinal from public.claim_batch('{erase}', '{anna}', '{r}', '{false}', true);

select throws_ok($$ select public.erase_step('anna') $$, 'SL001', null, 'a step needs a beginning');
select throws_ok($$ select public.begin_erasure('', null, null, 'op') $$, 'SL001', null, 'an id has characters');
select throws_ok(
  $$ select public.begin_erasure('erased:' || repeat('0', 32), null, null, 'op') $$, 'SL001', null, 'an erased user is not erased'
);
select is(public.begin_erasure('anna', true, 'erased:' || repeat('a', 32), 'op', 'anna asked'), 'erased:' || repeat('a', 32), 'it begins');
select is(public.begin_erasure('anna', true, null, 'op', 'anna asked'), 'erased:' || repeat('a', 32), 'and keeps its name');
select is((select count(*)::int from public.open_claims_of('anna', 10)), 1, 'one claim of the verified user is on its way');
select throws_ok($$ select public.finish_erasure('anna') $$, 'SL001', null, 'it does not end before it is done');

select is(public.erase_claims('anna', array(select claim_id from public.open_claims_of('anna', 10))), 1, 'it changes');
select is(public.erase_claims('anna', array(select claim_id from public.claims)), 1, 'only the claims of that user, whichever claims are named');
select results_eq(
  $$ select user_id::text, request_id::text, request_key is null from public.claims
     where user_id = 'erased:' || repeat('a', 32) and verified $$,
  $$ values ('erased:' || repeat('a', 32), 'erased:' || repeat('a', 32), false) $$, 'with its request, whose key stays'
);
select is_empty($$ select * from pgmq.q_intake_queue where message ->> 'user_id' = 'anna' $$, 'with its message');
select is_empty($$ select * from public.inventory_slots where locked_by = 'anna' $$, 'and its slot');
select is((select locked_by from public.inventory_slots where locked_by = 'bob'), 'bob', 'and no other''s');

create function pg_temp.pass() returns boolean language plpgsql as $$
declare
  v_step record;
begin
  loop
    select * into v_step from public.erase_step('anna', 2);
    exit when v_step.place is null;
  end loop;
  return v_step.is_clean;
end
$$;
select is(pg_temp.pass(), false, 'a pass that comes after a change is not the last');
select is(pg_temp.pass(), true, 'one that finds nothing is');
select results_eq(
  $$ select changed ->> 'public.claims' from public.finish_erasure('anna') $$, $$ values ('2') $$, 'the end tells what changed'
);
select is_empty($$ select * from public.finish_erasure('anna') $$, 'once');
select is_empty('select * from audit.erasures', 'and the database does not know whom');
select matches(
  (select subject || ': ' || reason from audit.audit_logs where action = 'user_erase'), '^user (user:[0-9a-f]{32}): \1 asked$',
  'the log does not either'
);

-- A pass that met others.
select public.begin_erasure('bob', null, null, 'op');
insert into intake.parcels (pool_id, version, seq, kind, body) values ('p', 1, 1, 'claims', '[]');
select throws_ok($$ select public.begin_erasure('bob', null, null, 'op') $$, 'SL011', null, 'not while a pool is between two cells');
delete from intake.parcels;
select public.cell_join('here', 0, 'op');
select throws_ok($$ select public.pool_pack('erase', 'there', 'op') $$, 'SL022', null, 'and no pool leaves meanwhile');
update pgmq.q_intake_queue set read_ct = 1, vt = now() + interval '1 hour', message = message || '{"claim_id": "by hand"}'
where message ->> 'user_id' = 'bob';
select throws_ok(
  $$ select public.erase_step('bob', 100) from generate_series(1, 20) $$, 'SL011', null, 'a message without a claim that a worker has is waited for'
);

-- Rows of the log that are sealed stay as they are, also for who knows the setting.
set local sluice.audit_exception = 'erase';
select throws_ok(
  $$ update audit.audit_logs set reason = 'x' where id > (select begins_after from audit.chain) $$, '23001', null, 'no sealed row changes'
);

select * from finish();
rollback;
