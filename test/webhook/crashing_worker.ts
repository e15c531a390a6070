// A worker whose handler ends the process when its event says so; started by crash.test.ts.

import { NO_METRICS } from '#core/ports.ts';
import type { Handler } from '#core/webhook/handlers.ts';
import { createLog } from '../../src/log.ts';
import { openProcessor } from '../../src/webhook/crew.ts';
import { registerHandlers } from '../../src/webhook/handlers.ts';

const handler: Handler = {
  name: 'own',
  provider: 'shop',
  types: ['act'],
  async call(event) {
    if (event.payload.exit) process.exit(1);
  },
  async apply(event, tx) {
    await tx.query('insert into app.effects values ($1)', [event.eventId]);
  },
};
const handlers = new Map([[handler.name, handler]]);
const { processor, database, end } = openProcessor({
  db2Url: process.argv[2] ?? '',
  workers: 1,
  batchSize: 100,
  handlers,
  metrics: NO_METRICS,
  log: createLog('silent'),
});
await registerHandlers(database, handlers);
while ((await processor.step(new AbortController().signal)).total > 0);
await end();
