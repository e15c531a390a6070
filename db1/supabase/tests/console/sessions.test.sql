-- A session of the console that was signed out stays so until its end, for every server.
begin;
select plan(6);

select is_empty($$ select * from public.sessions_ended() $$, 'no operator has signed out');
select lives_ok($$ select public.session_end('one', now() + interval '1 hour') $$, 'one signs out');
select lives_ok($$ select public.session_end('one', now() + interval '1 hour') $$, 'and once more');
select results_eq(
  $$ select session_id, abs(ends_ms - extract(epoch from now() + interval '1 hour') * 1000) < 60000 from public.sessions_ended() $$,
  $$ values ('one', true) $$, 'that is one session, with its end'
);
select throws_ok(
  $$ select public.session_end(repeat('x', 65), now()) $$, '23514', null, 'an invalid session id is refused'
);

insert into intake.ended_sessions values ('old', now() - interval '1 hour');
select public.session_end('two', now() + interval '1 hour');
select results_eq(
  $$ select s.session_id from intake.ended_sessions s order by 1 $$, $$ values ('one'), ('two') $$,
  'what has ended anyway is forgotten'
);

select * from finish();
rollback;
