insert into supabase_migrations.seed_files (path, hash) values ($1, $2);
