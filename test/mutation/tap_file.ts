// Runs one pgTAP file of this tree on databases of its own, and prints TAP: for a bug that pgTAP has to find.

import { join } from 'node:path';
import { withClient } from '../../src/migrate/sql.ts';
import { PROJECT_ROOT } from '../../src/project_root.ts';
import { runTapFile } from '../pgtap/run_file.ts';
import { startDatabases } from '../support/databases.ts';

const [file = ''] = process.argv.slice(2);
const side = file.startsWith('db1/') ? 'db1' : 'db2';
const databases = await startDatabases(side === 'db2' ? { db1: false } : {});
try {
  const { url } = databases[side];
  await withClient(url, (client) =>
    client.query('create extension if not exists pgtap with schema extensions'),
  );
  for (const path of [join(side, 'supabase/tests/00000_helpers.test.sql'), file]) {
    const { failures } = await runTapFile(PROJECT_ROOT, path, url);
    for (const [at, { name, detail }] of failures.entries())
      console.log(`not ok ${at + 1} - ${name} ${detail.trim().replaceAll('\n', ' | ')}`);
  }
} finally {
  await databases.stop();
}
