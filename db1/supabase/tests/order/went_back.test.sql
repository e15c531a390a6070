-- An intake that was restored to an earlier moment is asked again about payments. The ledger says what was decided before: a payment
-- that went back, or is to, buys nothing a second time.
begin;
select plan(12);

create function pg_temp.again(p_user text, p_id text, p_was text) returns text language sql as $$
  select tests.settle(tests.payment(tests.order_of('sale', p_user), p_id, jsonb_build_object('was', p_was)), true)
$$;
create function pg_temp.batch(p_user text, variadic p_was text[]) returns text language sql as $$
  select string_agg(s.decision || ' ' || s.payment_key, ', ') from public.settle_payments((
    select jsonb_agg(jsonb_strip_nulls(tests.payment(tests.order_of('sale', p_user), p_user || n, jsonb_build_object('was', w))))
    from unnest(p_was) with ordinality as t (w, n)
  )) s
$$;

select tests.paid_pool('sale', 10);
select tests.ask('sale', u) from unnest('{ann,bob,cid,dan,eve,fay}'::text[]) u;
select is(pg_temp.again('ann', 'pi_ann', 'refund'), 'refund went_back', 'a payment that was to be refunded is again');
select is(pg_temp.again('ann', 'pi_ann', 'refund'), 'refund went_back', 'a second time too');
select is(tests.states((tests.order_of('sale', 'ann')).order_id), 'held', 'and buys nothing, though its claim is held');
select is(pg_temp.again('bob', 'pi_bob', 'void'), 'void went_back', 'one that has gone back is void, and not owed');
select is(pg_temp.again('cid', 'pi_cid', 'funds'), 'funds in_time', 'one that bought buys again');
select is(pg_temp.again('cid', 'pi_second', 'void'), 'void second_payment', 'a second payment that has gone back is void');

select tests.order_over((tests.order_of('sale', 'fay')).order_id, '1 hour');
select public.expire_holds();
select is(pg_temp.again('fay', 'pi_fay', 'void'), 'void went_back', 'a late one that has gone back');
select is((select count(*)::int from public.claims where user_id = 'fay'), 1, 'gets no other slots');

-- Many at a time.
select is(pg_temp.batch('dan', 'refund', 'void'), null, 'none of those buys');
select is(tests.states((tests.order_of('sale', 'dan')).order_id), 'held', 'and the claim is held');
select is(pg_temp.batch('eve', null, 'funds'), 'funds stripe/eve2', 'of two payments that one buys which had bought before');
select is(pg_temp.batch('dan', 'refund', 'funds'), 'funds stripe/dan2', 'also beside one that went back');

select * from finish();
rollback;
