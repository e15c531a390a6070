-- Which states a claim may have while its slot is its own, and after it was paid for: the constraint compares states by their
-- order, so this names them.
begin;
select plan(2);

-- What the database says to a claim in this state: kept, or the name of the constraint that refuses it.
create function pg_temp.tried(p_state public.claim_state, p_is_freed boolean, p_paid boolean) returns text
language plpgsql as $$
declare
  v_rule text;
begin
  begin
    insert into public.claims (pool_id, slot_id, user_id, state, freed_at, paid)
    values ('p', gen_random_uuid(), 'ann', p_state, case when p_is_freed then now() end, p_paid);
    return 'kept';
  exception
    when check_violation then
      get stacked diagnostics v_rule = constraint_name;
      return v_rule;
  end;
end
$$;

select results_eq(
  $$ select s.state::text, f.is_freed from unnest(enum_range(null::public.claim_state)) s (state)
     cross join (values (false), (true)) f (is_freed) where pg_temp.tried(s.state, f.is_freed, null) = 'kept' order by s.state $$,
  $$ values ('held', false), ('queued', false), ('validated', false), ('committed', false), ('dead_letter', false),
    ('released', true), ('expired', true), ('refused', true), ('discarded', true), ('voided', true) $$,
  'a claim that has ended has freed its slot, and no other has'
);
select results_eq(
  $$ select s.state::text, pg_temp.tried(s.state, s.state >= 'released', true)
     from unnest(enum_range(null::public.claim_state)) s (state) order by s.state $$,
  $$ values ('held', 'freed_means_the_claim_has_ended'), ('queued', 'kept'), ('validated', 'kept'), ('committed', 'kept'),
    ('dead_letter', 'kept'), ('released', 'freed_means_the_claim_has_ended'), ('expired', 'freed_means_the_claim_has_ended'),
    ('refused', 'freed_means_the_claim_has_ended'), ('discarded', 'freed_means_the_claim_has_ended'), ('voided', 'kept') $$,
  'a claim that was paid for ends as voided, and in no other way'
);

select * from finish();
rollback;
