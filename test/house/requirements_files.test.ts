// What the four documents ask of files by their names: docs/requirements.md leads here.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { inTree } from './named_tests.ts';

const read = (file: string): string => {
  const text = inTree(file);
  assert.ok(text !== undefined, `${file} is missing`);
  return text;
};
const under = (folder: string, ...names: string[]): string[] => names.map((name) => `${folder}/${name}`);

const INTAKE_FILES = [
  '.env.example',
  ...under('db1/supabase', 'config.toml', 'seed.sql'),
  ...under('db1/supabase/migrations', '20260224100000_intake_engine_setup.sql'),
  ...under('db1/supabase/migrations', '20260224100001_intake_engine_functions.sql'),
  ...under('db1/supabase/migrations', '20260224100002_intake_engine_cron.sql'),
  ...under('db1/supabase/functions', 'bridge-worker/index.ts', 'bridge-worker/index.test.ts'),
  ...under('db1/supabase/functions', 'admin-dlq/index.ts', 'admin-dlq/index.test.ts'),
  ...under('db1/supabase/tests', '00001_intake_tables.test.sql', '00002_intake_functions.test.sql'),
  ...under('db1/supabase/tests', '00003_intake_cron.test.sql'),
  ...under('db2/supabase', 'config.toml', 'seed.sql', 'migrations/20260224100000_db2_ledger.sql'),
  ...under('db2/supabase/tests', '00001_db2_ledger.test.sql'),
];

describe('files that the requirements name', () => {
  it('the tree has every file that the intake document names', () => {
    for (const file of INTAKE_FILES) assert.notEqual(read(file).trim(), '', file);
  });

  it('the two projects have the ports of the document', () => {
    const ports = { db1: [54321, 54322, 54323], db2: [54421, 54422, 54423] };
    for (const [side, [api, db, studio]] of Object.entries(ports)) {
      const config = read(`${side}/supabase/config.toml`);
      const portOf = (section: string) =>
        Number(new RegExp(`^\\[${section}\\]\\n(?:(?!\\[).*\\n)*?port = (\\d+)`, 'm').exec(config)?.[1]);
      assert.deepEqual([portOf('api'), portOf('db'), portOf('studio')], [api, db, studio], side);
    }
  });

  it('.env.example has the six variables of the document', () => {
    const set = [...read('.env.example').matchAll(/^([A-Z0-9_]+)=/gm)].map(([, name]) => name);
    const names = ['URL', 'ANON_KEY', 'SERVICE_ROLE_KEY'];
    assert.deepEqual(
      set,
      ['DB1', 'DB2'].flatMap((side) => names.map((name) => `${side}_SUPABASE_${name}`)),
    );
    assert.match(read('.env.example'), /^DB1_SUPABASE_URL=http:\/\/127\.0\.0\.1:54321$/m);
    assert.match(read('.env.example'), /^DB2_SUPABASE_URL=http:\/\/127\.0\.0\.1:54421$/m);
  });

  it('the bridge worker imports supabase-js from jsr and never closes its clients', () => {
    const worker = read('db1/supabase/functions/bridge-worker/index.ts');
    assert.match(worker, /^import \{ createClient \} from 'jsr:@supabase\/supabase-js@2';$/m);
    // On the level of the module: one for each database.
    assert.match(worker, /^const db1 = callDatabase\(connect, env, 'DB1'\);$/m);
    assert.match(worker, /^const db2 = /m);
    assert.doesNotMatch(worker, /finally|\.end\(\)|removeAllChannels/);
  });

  it('the contract workflow starts by hand or by its label, and keeps what the tests left', () => {
    const workflow = read('.github/workflows/webhook_contract_tests.yml');
    assert.match(workflow, /^ {2}workflow_dispatch:$/m);
    assert.match(workflow, /types: \[labeled\]/);
    assert.match(workflow, /labels\.\*\.name, 'run-webhook-contracts'\)/);
    assert.match(workflow, /uses: actions\/upload-artifact@/);
  });
});
