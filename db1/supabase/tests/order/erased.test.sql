-- A payment goes on naming a user who was erased while the order waited for it: it buys all the same. One that names none does not.
begin;
select plan(3);

select tests.paid_pool('sale', 2);
select tests.ask('sale', 'ann'), tests.ask('sale', 'bob');
create temp table fact as
select o.user_id, tests.payment(o, 'pi_' || o.user_id) as payment from public.orders o where o.pool_id = 'sale';
update public.orders set user_id = 'erased:' || md5('ann') where pool_id = 'sale' and user_id = 'ann';

savepoint unpaid;
select is(
  tests.settle((select payment || '{"user_id": null}' from fact where user_id = 'ann')), 'refund other_user',
  'a payment without a user does not buy the order of an erased one'
);
rollback to unpaid;
select is(
  tests.settle((select payment from fact where user_id = 'ann')), 'funds in_time', 'the order of an erased user is bought'
);
update public.orders set user_id = 'another' where pool_id = 'sale' and user_id = 'bob';
select is(
  tests.settle((select payment from fact where user_id = 'bob')), 'refund other_user', 'any other name is another user''s money'
);

select * from finish();
rollback;
