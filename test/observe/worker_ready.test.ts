import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createLog } from '../../src/log.ts';
import { createMetrics } from '../../src/metrics.ts';
import { startMetricsServer } from '../../src/server/metrics_server.ts';
import { ask } from '../server/support.ts';
import { startDatabases } from '../support/databases.ts';

// That DB2 counts, too, is in test/webhook/metrics.test.ts.
describe('/readyz of the workers', () => {
  it('is 503 while DB1 is away, where the bridge gets its work from; the process is alive', async (t) => {
    const databases = await startDatabases();
    t.after(() => databases.stop());
    const server = await startMetricsServer({
      port: 0,
      db1Url: databases.db1.url,
      db2Url: databases.db2.url,
      metrics: createMetrics(),
      log: createLog('silent'),
    });
    t.after(() => server.stop());
    const statusOf = async (path: string) => (await ask(`http://127.0.0.1:${server.port}${path}`)).status;
    assert.equal(await statusOf('/readyz'), 200);
    await databases.db1.stop('immediate');
    assert.equal(await statusOf('/readyz'), 503);
    assert.equal(await statusOf('/healthz'), 200);
  });
});
