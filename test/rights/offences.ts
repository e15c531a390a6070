// For each rule in advisors/: what breaks it, and who is then named. A rule that finds nothing in a database that breaks it
// would find nothing anywhere.

export type Side = 'db1' | 'db2';

export type Offence = {
  /** Left out: both. */
  only?: Side;
  /** Done inside a transaction that is rolled back. */
  breaks: string;
  names: RegExp;
};

const TABLE =
  'create table public.loose (id int primary key, owner text); alter table public.loose enable row level security;';
const policy = (using: string) =>
  `${TABLE} create policy p on public.loose to authenticated using (${using})`;

export const OFFENCES: Record<string, Offence[]> = {
  function_without_search_path: [
    { breaks: 'create function public.f() returns int language sql as $$ select 1 $$', names: /^f\(\)$/ },
    {
      breaks:
        'create function public.f() returns int language sql set search_path = public as $$ select 1 $$',
      names: /^f\(\)$/,
    },
    { only: 'db2', breaks: 'alter procedure webhook.work(int) security definer', names: /^webhook\.work/ },
    {
      only: 'db1',
      breaks: 'alter function intake.trigger_drain() reset search_path',
      names: /^intake\.trigger_drain/,
    },
  ],
  definer_function_open_to_callers: [
    {
      breaks: `create function public.f() returns int language sql security definer set search_path = '' as $$ select 1 $$;
        grant execute on function public.f() to authenticated`,
      names: /^authenticated may execute f\(\)$/,
    },
    {
      only: 'db1',
      breaks: 'grant execute on function public.bridge_take(int[], int[], int) to public',
      names: /^public may execute bridge_take/,
    },
    {
      only: 'db1',
      breaks: 'grant execute on function public.release_own_claim(uuid, text, text, bytea) to anon',
      names: /^anon may execute release_own_claim/,
    },
  ],
  table_without_row_security: [
    { breaks: 'create table public.loose (id int primary key)', names: /^loose$/ },
    { only: 'db1', breaks: 'alter table public.claims disable row level security', names: /^claims$/ },
    { only: 'db2', breaks: 'create table webhook.loose (id int primary key)', names: /^webhook\.loose$/ },
  ],
  policy_that_is_switched_off: [
    {
      breaks: `${policy('false')}; alter table public.loose disable row level security`,
      names: /^p on loose$/,
    },
  ],
  policy_that_asks_for_each_row: [
    { breaks: policy('auth.uid()::text = owner'), names: /^p on loose$/ },
    { breaks: policy(`(auth.jwt() ->> 'sub') = owner`), names: /^p on loose$/ },
    { breaks: policy(`current_setting('request.jwt.claims') = owner`), names: /^p on loose$/ },
    {
      breaks: policy(`(select auth.uid())::text = owner and auth.role() = 'authenticated'`),
      names: /^p on loose$/,
    },
  ],
  policy_that_is_always_true: [
    { breaks: policy('true'), names: /^p on loose$/ },
    {
      breaks: `${TABLE} create policy p on public.loose for insert with check (true)`,
      names: /^p on loose$/,
    },
  ],
  policy_by_what_users_can_write: [
    { breaks: policy(`(select auth.jwt()) -> 'user_metadata' ->> 'admin' = 'yes'`), names: /^p on loose$/ },
  ],
  policies_that_widen_one_another: [
    {
      breaks: `${policy('false')}; create policy q on public.loose for select to authenticated using (id = 1)`,
      names: /^loose has 2 for authenticated$/,
    },
  ],
  open_table_without_policy: [
    { breaks: `${TABLE} grant select on public.loose to anon`, names: /^anon has rights to loose$/ },
    {
      breaks: `${policy('false')}; grant delete on public.loose to anon`,
      names: /^anon has rights to loose$/,
    },
  ],
  view_with_its_owners_rights: [
    { breaks: 'create view public.seen as select 1 as one', names: /^seen$/ },
    { breaks: 'create view public.seen with (security_invoker = false) as select 1 as one', names: /^seen$/ },
    { only: 'db1', breaks: 'grant usage on schema intake to anon', names: /^intake\.pool_gates$/ },
  ],
  users_shown_to_callers: [
    {
      breaks:
        'create table auth.users (id uuid, email text); create view public.seen as select email from auth.users',
      names: /^seen$/,
    },
  ],
  unfiltered_relation_in_the_api: [
    { breaks: 'create materialized view public.seen as select 1 as one', names: /^seen$/ },
  ],
  queue_open_to_callers: [
    {
      only: 'db1',
      breaks: 'grant select on pgmq.q_intake_queue to authenticated',
      names: /^authenticated has .*q_intake_queue$/,
    },
    {
      only: 'db1',
      breaks: 'grant select on net.http_request_queue to public',
      names: /^anon has .*http_request_queue$/,
    },
    { breaks: 'grant insert on audit.audit_logs to service_role', names: /^service_role has .*audit_logs$/ },
  ],
  extension_in_public: [{ breaks: 'create extension pgtap schema public', names: /^pgtap$/ }],
  open_default_rights: [
    {
      breaks: 'alter default privileges in schema public grant select on tables to anon',
      names: /^anon select in public$/,
    },
    { breaks: 'alter default privileges grant execute on functions to public', names: /public/ },
  ],
  duplicate_index: [
    {
      breaks: `${TABLE} create index a on public.loose (owner); create index b on public.loose (owner)`,
      names: /^a and b$/,
    },
    {
      breaks: `${TABLE} create index a on public.loose (lower(owner)) where id > 1;
        create index b on public.loose (lower(owner)) where id > 1`,
      names: /^a and b$/,
    },
  ],
  foreign_key_without_index: [
    {
      breaks: `${TABLE} create table public.points (id int primary key, loose_id int references public.loose)`,
      names: /^points_loose_id_fkey on points$/,
    },
  ],
  table_without_primary_key: [{ breaks: 'create table public.loose (id int unique)', names: /^loose$/ }],
  column_that_stops_upgrades: [
    { breaks: 'create table public.loose (id int primary key, what regprocedure)', names: /^loose\.what$/ },
  ],
  secret_column_open_to_callers: [
    {
      breaks: `create table public.loose (id int primary key, api_key text); grant select (api_key) on public.loose to anon`,
      names: /^loose\.api_key$/,
    },
  ],
  mighty_role: [
    { breaks: 'alter role anon bypassrls', names: /^anon$/ },
    { breaks: 'alter role service_role createrole', names: /^service_role$/ },
    { breaks: 'grant service_role to authenticated', names: /^authenticated$/ },
    { breaks: 'grant pg_read_all_data to authenticator', names: /^authenticator$/ },
    { breaks: 'alter role authenticator inherit', names: /^authenticator$/ },
  ],
  secret_in_settings: [
    { breaks: `alter database postgres set app.service_role_key = 'x'`, names: /^app\.service_role_key$/ },
    { breaks: `alter role anon set app.harmless = 'eyJhbGciOiJIUzI1NiJ9.e30.x'`, names: /^app\.harmless$/ },
    { breaks: `alter database postgres set app.harmless = 'postgres://u:p@db/x'`, names: /^app\.harmless$/ },
    { breaks: `set local application_name = 'postgres://u:p@db/x'`, names: /^application_name$/ },
  ],
  secret_in_work_tables: [
    {
      only: 'db1',
      breaks: `select cron.schedule('leaky', '* * * * *', $$select net.http_post('http://x', headers => '{"Authorization": "Bearer abc"}')$$)`,
      names: /^job leaky$/,
    },
    {
      only: 'db1',
      breaks: `insert into cron.job_run_details (jobid, return_message) values (7, 'connect failed: postgres://u:p@db/x')`,
      names: /^run of 7$/,
    },
    {
      only: 'db1',
      breaks: `insert into net._http_response (id, content) values (8, '{"key":"eyJhbGciOiJIUzI1NiJ9.e30.x"}')`,
      names: /^answer 8$/,
    },
    {
      only: 'db1',
      breaks: `select net.http_post('https://x/?service_role_key=abc')`,
      names: /^request \d+$/,
    },
  ],
};
