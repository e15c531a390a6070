// The tests of doors, workers and Edge Functions once more, each with a PgBouncer in transaction mode in front of its databases.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { findPostgrest } from '../../src/stack/postgrest.ts';
import { serverUser } from '../../src/stack/server_user.ts';
import { POOLED } from '../support/databases.ts';
import { PROJECT } from '../support/dev.ts';
import { ensurePgbouncer } from '../support/pgbouncer.ts';

/** None of them counts on a session of its own. */
const DOORS = [
  ...['test/server/claims.test.ts', 'test/server/challenge_claims.test.ts', 'test/calls/routes.test.ts'],
  ...['test/webhook/routes.test.ts', 'test/webhook/inline.test.ts'],
];
const WORKERS = ['test/work/work.test.ts', 'test/bridge/databases.test.ts', 'test/webhook/handlers.test.ts'];
const EDGE = ['test/edge/edge.test.ts', 'test/edge/rpc.test.ts', 'test/edge/webhooks.test.ts'];

/** Why PgBouncer is missing: this is not Debian, or the tests may not install packages. */
const reason = await ensurePgbouncer();

describe('behind a pooler in transaction mode', { skip: reason ?? false }, () => {
  let dir: string;

  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'sluice-green-'));
    chmodSync(dir, 0o755);
  });
  after(() => rmSync(dir, { recursive: true, force: true }));

  const stayGreen = async (files: readonly string[], env: Record<string, string>) => {
    const { NODE_TEST_CONTEXT: _, ...own } = process.env;
    const args = ['--import', 'tsx', '--test', '--test-concurrency=1', ...files];
    const output = await new Promise<string>((resolve, reject) => {
      // In the process group of this test: what ends that ends these too.
      execFile(
        process.execPath,
        args,
        { cwd: PROJECT, env: { ...own, ...env }, maxBuffer: Infinity },
        (error, stdout) => (error === null ? resolve(stdout) : reject(new Error(stdout, { cause: error }))),
      );
    });
    assert.match(output, /^# pass [1-9]/m);
    assert.match(output, /^# skipped 0$/m);
  };

  it('the doors stay green', () => stayGreen(DOORS, { [POOLED]: '1' }));
  it('the workers stay green', () => stayGreen(WORKERS, { [POOLED]: '1' }));
  // They reach the databases through PostgREST alone.
  it('the Edge Functions stay green', () => stayGreen(EDGE, { POSTGREST_BIN: pooledPostgrest(dir) }));
});

/** A PostgREST that brings a PgBouncer of its own, which ends with it. As its documents say for such a pooler, it prepares nothing. */
function pooledPostgrest(dir: string): string {
  const program = join(dir, 'postgrest');
  // In two steps: who changes its user forgets with whom it should end.
  const asUser =
    'uid' in serverUser ? `setpriv --reuid=${serverUser.uid} --regid=${serverUser.gid} --clear-groups` : '';
  writeFileSync(
    program,
    `#!/bin/sh
set -eu
PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin
own=$(mktemp -d "${dir}/XXXXXX")
port=$('${process.execPath}' -e "const s=require('net').createServer().listen(0,'127.0.0.1',()=>{console.log(s.address().port);s.close()})")
rest=\${PGRST_DB_URI#*//}
name=\${rest%%:*}
rest=\${rest#*:}
password=\${rest%%@*}
server=\${rest#*@}
host=\${server%%:*}
target=\${server#*:}
target=\${target%%/*}
echo "\\"$name\\" \\"$password\\"" > "$own/users"
cat > "$own/ini" <<END
[databases]
postgres = host=$host port=$target
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $port
unix_socket_dir =
auth_type = scram-sha-256
auth_file = $own/users
pool_mode = transaction
server_round_robin = 1
END
chmod -R a+rX "$own"
${asUser} setpriv --pdeathsig KILL pgbouncer -q "$own/ini" &
export PGRST_DB_URI="postgres://$name:$password@127.0.0.1:$port/postgres"
export PGRST_DB_PREPARED_STATEMENTS=false PGRST_DB_CHANNEL_ENABLED=false
exec '${findPostgrest()}' "$@"
`,
  );
  chmodSync(program, 0o755);
  return program;
}
