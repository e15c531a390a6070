import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { openClient } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { webhooksHere } from './webhook_support.ts';

describe('sluice webhooks handlers', () => {
  let databases: TestDatabases;
  let db2: pg.Client;
  const webhooks = (...args: string[]) => webhooksHere(databases.db2.url, args);
  const json = async (...args: string[]) => JSON.parse((await webhooks(...args, '--json')).stdout);

  before(async () => {
    databases = await startDatabases({ db1: false });
    db2 = await openClient(databases.db2.url);
  });
  after(async () => {
    await db2?.end();
    await databases?.stop();
  });

  it('lists handlers, and removes one that no process serves, with an audit row', async () => {
    await db2.query(
      `select webhook.register_handlers('[{"name": "leftover", "provider": "p", "event_type": "old"}]')`,
    );
    assert.match((await webhooks('handlers', 'list')).stdout, /\np +old +typescript +leftover +any\n/);
    const removed = await json('handlers', 'remove', 'leftover', '--reason', 'gone');
    assert.deepEqual(removed, { removed: 1 });
    const listed: { handlers: { name: string }[] } = await json('handlers', 'list');
    assert.ok(listed.handlers.length > 0 && listed.handlers.every(({ name }) => name !== 'leftover'));
    const again = await webhooks('handlers', 'remove', 'leftover');
    assert.deepEqual([again.code, again.stderr.split('\n')[0]], [1, 'unknown handler leftover']);
    const { rows } = await db2.query(
      `select actor, reason from audit.audit_logs where action = 'webhook_handler_remove'`,
    );
    assert.deepEqual(rows, [{ actor: 'owner (grace)', reason: 'gone' }]);
  });

  it('lists the handlers that are disabled, and why', async () => {
    await db2.query(
      `select webhook.register_handlers('[{"name": "lame", "provider": "p", "event_type": "x", "fault": "has no apply"}]')`,
    );
    assert.match(
      (await webhooks('handlers', 'list')).stdout,
      /\nDisabled: lame: has no apply\. Its events wait\.\n$/,
    );
    const { disabled } = await json('handlers', 'list');
    assert.deepEqual([disabled[0].name, disabled[0].fault], ['lame', 'has no apply']);
  });
});
