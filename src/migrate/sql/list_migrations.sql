select version, array_to_string(statements, '') as statements
from supabase_migrations.schema_migrations
order by version;
