-- A payment goes on naming a user who was erased while the order waited for it: it buys all the same.
begin;
select plan(2);

select tests.paid_pool('sale', 2);
select tests.ask('sale', 'ann'), tests.ask('sale', 'bob');
create temp table fact as
select o.user_id, tests.payment(o, 'pi_' || o.user_id) as payment from public.orders o where o.pool_id = 'sale';
update public.orders set user_id = 'erased:' || md5('ann') where pool_id = 'sale' and user_id = 'ann';

select is(
  tests.settle((select payment from fact where user_id = 'ann')), 'funds in_time', 'the order of an erased user is bought'
);
update public.orders set user_id = 'another' where pool_id = 'sale' and user_id = 'bob';
select is(
  tests.settle((select payment from fact where user_id = 'bob')), 'refund other_user', 'any other name is another user''s money'
);

select * from finish();
rollback;
