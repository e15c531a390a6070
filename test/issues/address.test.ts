// What an operator reads where the address for alerts is refused: its own name, not that of a pool's hook.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { CallFunction } from '#core/call_function.ts';
import { createDatabase, type Database } from '../../src/db/database.ts';
import { startAlerts } from '../../src/issues/alerts.ts';
import { memoryLog } from '../core/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';

const PRIVATE = 'http://127.0.0.1:1/alerts';
const PATIENCE_MS = 30_000;

describe('an address that is refused', () => {
  let databases: TestDatabases;
  let db1: Database;
  const log = memoryLog();
  before(async () => {
    databases = await startDatabases({ db2: false });
    db1 = createDatabase({ url: databases.db1.url, max: 1, applicationName: 'test', log });
  });
  after(async () => {
    await db1?.end();
    await databases?.stop();
  });

  it('is called the address for alerts, not a hook’s, and its path is not told', async () => {
    const call: CallFunction = (name, args) => db1.call(`public.${name}`, args);
    const mark = { kind: 'secret', subject: 'endpoint shop', began_ms: Date.now(), ended_ms: null };
    await call('note_marks', { p_marks: [mark] });
    const loop = startAlerts(
      { url: PRIVATE, format: 'json' },
      { databases: [{ name: 'DB1', call }], callFirst: call, consoleUrl: () => undefined, log },
    );
    const said = (): string[] =>
      log.lines
        .filter(({ message }) => message === 'an alert could not be told')
        .map(({ fields }) => String(fields?.cause));
    try {
      for (const end = Date.now() + PATIENCE_MS; said().length === 0; ) {
        assert(Date.now() < end, 'no alert was tried');
        await pause(50);
      }
    } finally {
      await loop.stop();
    }
    assert.match(
      said()[0] ?? '',
      /the address for alerts \(SLUICE_ALERT_URL\) is a private or special address/,
    );
    // Its path may be what proves who may post there.
    assert.doesNotMatch(JSON.stringify(said()), /hook|\/alerts/);
  });
});
