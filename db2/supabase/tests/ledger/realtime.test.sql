-- Where Supabase Realtime listens, it hears of tickets and of nothing else.
begin;
select plan(1);

select case
  when exists (select from pg_publication where pubname = 'supabase_realtime') then
    is(
      (select string_agg(schemaname || '.' || tablename, ',') from pg_publication_tables
       where pubname = 'supabase_realtime' and schemaname = 'public'),
      'public.confirmed_tickets', 'the publication supabase_realtime has confirmed_tickets, and no other table of ours'
    )
  else skip('this database has no publication supabase_realtime', 1)
end;

select * from finish();
rollback;
