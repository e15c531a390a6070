insert into supabase_migrations.schema_migrations (version, name, statements)
values ($1, $2, array[$3]);
