-- The Supabase CLI's own tables, shape and all, so that a later `supabase db push` finds nothing left to do.
create schema if not exists supabase_migrations;

create table if not exists supabase_migrations.schema_migrations (version text not null primary key);
alter table supabase_migrations.schema_migrations add column if not exists statements text[];
alter table supabase_migrations.schema_migrations add column if not exists name text;

create table if not exists supabase_migrations.seed_files (path text not null primary key, hash text not null);
