select s.name, s.setting
from pg_catalog.pg_settings s
where s.name in (
  'server_version', 'fsync', 'synchronous_commit', 'full_page_writes', 'wal_sync_method', 'wal_level', 'wal_writer_delay'
)
order by s.name;
