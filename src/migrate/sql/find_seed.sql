select hash from supabase_migrations.seed_files where path = $1;
