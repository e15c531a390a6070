-- Which of the two databases this is, by the table that only it has; neither before the migrations.
select pg_catalog.to_regclass('public.inventory_slots') is not null as is_intake,
  pg_catalog.to_regclass('public.confirmed_tickets') is not null as is_ledger;
