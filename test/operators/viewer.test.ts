// Every command, run by a viewer with arguments that would change something: no table of either database is another afterwards. Run by
// an admin, the same words change something.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { COMMAND_ROLES } from '../../src/commands/roles.ts';
import { changed } from '../abuse/fingerprint.ts';
import { runHere } from '../cli/support.ts';
import { ask, bearer, openClient, startTestServer } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { type Furnished, fingerprintOf, furnish, untilCopied } from './furnished.ts';
import { addOperator } from './support.ts';

const MARK = 'shown';
const BUYER = `${MARK} buyer`;
const SECRET = { OPS_SITE_SECRET: 'a secret of more than thirty-two characters' };

/** Commands that reach neither database nor server, or that no arguments make change these databases; with the reason. */
const NOT_TRIED: Readonly<Record<string, string>> = {
  'dev up': 'starts databases of its own',
  'dev start': 'as dev up',
  'dev stop': 'as dev up',
  bench: 'as dev up',
  reset: 'removes the databases of this checkout',
  completion: 'prints a script',
  'webhooks send': 'delivers as a provider, with the secret of the endpoint',
  'webhooks verify': 'reads a file',
  'calls send': 'as webhooks send',
};

/** What an admin who runs it changes cannot be seen in these databases; the viewer tries it all the same. */
const UNSEEN: Readonly<Record<string, string>> = {
  serve: 'goes on until it is stopped',
  work: 'takes what is due, and the test has let nothing come due',
  migrate: 'both databases are up to date',
  export: 'writes a file',
  import: 'refuses databases that are not empty',
  'pools move': 'needs two cells',
  'cells drain': 'needs two cells',
  'webhooks backfill': 'needs the provider',
  'reconcile --fix': 'finds no difference',
  demo: 'needs workers',
};

describe('a viewer at the command line', () => {
  let databases: TestDatabases;
  let server: Awaited<ReturnType<typeof startTestServer>>;
  let db1: pg.Client;
  let db2: pg.Client;
  let there: Furnished;
  let envOf: (key: string) => Record<string, string>;
  let viewer: string;
  /** Of the claims that are dead letters. */
  let issue: string;
  let admin: string;
  before(async () => {
    databases = await startDatabases();
    server = await startTestServer(databases);
    [db1, db2] = [await openClient(databases.db1.url), await openClient(databases.db2.url)];
    there = await furnish(db1, db2, server.url, MARK);
    await furnishMore();
    const { rows } = await db1.query(`select id from public.issue_list(p_kind => 'claim', p_lane => $1)`, [
      MARK,
    ]);
    issue = rows[0].id;
    viewer = await addOperator(db1, 'the viewer', 'viewer');
    admin = await addOperator(db1, 'the admin', 'admin');
    await addOperator(db1, 'the operator', 'operator');
    await untilCopied(db1, db2);
    for (const key of [viewer, admin])
      assert.equal((await ask(`${server.url}/admin/session`, { headers: bearer(key) })).status, 200);
    envOf = (key) => ({
      DB1_URL: databases.db1.url,
      DB2_URL: databases.db2.url,
      SLUICE_URL: server.url,
      SLUICE_OPERATOR_KEY: key,
      ...SECRET,
    });
  });
  after(async () => {
    await db1?.end();
    await db2?.end();
    await server?.stop();
    await databases?.stop();
  });

  /** What only commands act on. */
  async function furnishMore(): Promise<void> {
    await db1.query(`select public.pool_create('closed', 1, '{"is_active": false}', 'ann')`);
    await db1.query(`select public.allow_hook_host('10.0.0.8', 'ann')`);
    await db2.query(`select webhook.allow_secret('SPARE_SECRET', 'ann')`);
    await db2.query(
      `select webhook.add_endpoint('off', 'stripe', '{OPS_SITE_SECRET}', 'queued', '{}', 'ann')`,
    );
    await db2.query(`select webhook.change_endpoint('off', '{"is_active": false}', 'ann')`);
    for (const site of [MARK, 'off'])
      await db2.query(`select calls.add_site($1, '{OPS_SITE_SECRET}', true, null, 'ann')`, [site]);
    await db2.query(`select calls.change_site('off', '{"is_active": false}', 'ann')`);
    await db2.query(
      `insert into public.webhook_events (webhook_id, event_id, status, payload, processed_at, received_at)
       select e.webhook_id, 'old', 'success', '{}', now() - interval '400 days', now() - interval '400 days'
       from public.webhook_endpoints e where e.name = $1`,
      [MARK],
    );
  }

  /** Arguments with which the command would change something, by its words; the last one erases what the others need. */
  const attacks = (): Record<string, string[]> => ({
    'operators add': ['eve', '--role', 'admin'],
    'operators rotate': ['the operator'],
    'operators revoke': ['the operator', '--yes'],
    'hosts allow': ['10.0.0.9'],
    'hosts remove': ['10.0.0.8'],
    'retention set': ['metrics', '7'],
    'pools create': ['forged', '--slots', '1'],
    'pools open': ['closed'],
    'pools set': [MARK, '--max-per-user', '7'],
    'pools describe': [MARK, '--title', 'forged'],
    'pools add-slots': [MARK, '1'],
    'pools close': [MARK, '--yes'],
    'pools show': [MARK],
    'pools move': [MARK, '--to', 'b'],
    'claims find': ['--pool', MARK],
    'claims show': [there.claims[0] ?? ''],
    'claims release': [there.claims[0] ?? '', '--reason', 'forged', '--yes'],
    'claims void': [there.claims[1] ?? '', '--reason', 'forged', '--yes'],
    'orders show': [there.order],
    'refunds show': [there.refunds[0] ?? ''],
    'refunds send': [there.refunds[0] ?? '', '--reason', 'forged', '--yes'],
    'refunds skip': [there.refunds[1] ?? '', '--reason', 'forged', '--yes'],
    'issues show': [issue],
    'issues resolve': [issue],
    'dlq show': [String(there.letters[0])],
    'dlq replay': [String(there.letters[0]), '--yes'],
    'dlq discard': [String(there.letters[1]), '--yes'],
    'issues replay': [issue, '--yes'],
    'webhooks endpoints add': ['forged', '--provider', 'stripe', '--secret-name', 'OPS_SITE_SECRET'],
    'webhooks endpoints change': [MARK, '--max-attempts', '7'],
    'webhooks endpoints rotate': [MARK, '--secret-name', 'OPS_SITE_SECRET'],
    'webhooks endpoints disable': [MARK],
    'webhooks endpoints enable': ['off'],
    'webhooks secrets allow': ['FORGED_SECRET'],
    'webhooks secrets remove': ['SPARE_SECRET'],
    'webhooks handlers remove': ['webhook.apply_side_effect'],
    'webhooks show': [there.events[0] ?? ''],
    'webhooks payments name': [MARK, 'forged'],
    'webhooks inbox replay': [String(there.deliveries[0])],
    'webhooks inbox discard': [String(there.deliveries[1])],
    'webhooks replay': [there.events[0] ?? '', '--reason', 'forged'],
    'webhooks skip': [there.events[1] ?? '', '--reason', 'forged', '--yes'],
    'webhooks prune': ['--days', '30', '--yes'],
    'webhooks backfill': [MARK, '--since', '2026-02-24'],
    'calls sites add': ['forged', '--secret-name', 'OPS_SITE_SECRET'],
    'calls sites change': [MARK, '--on-outage', 'accept'],
    'calls sites rotate': [MARK, '--secret-name', 'OPS_SITE_SECRET'],
    'calls sites disable': [MARK],
    'calls sites enable': ['off'],
    'calls show': [there.call],
    'cells add': ['main'],
    'cells drain': ['main'],
    export: ['/nowhere/at/all'],
    import: ['/nowhere/at/all'],
    work: ['--once'],
    demo: ['--buyers', '1', '--seats', '1'],
    'users export': [BUYER],
    'users erase': [BUYER, '--yes'],
  });

  const tried = () => Object.keys(COMMAND_ROLES).filter((words) => !(words in NOT_TRIED));

  async function run(words: string, key: string): Promise<{ code: number; said: string }> {
    const { code, stdout, stderr } = await runHere([...words.split(' '), ...(attacks()[words] ?? [])], {
      ...envOf(key),
      // Where the role were let through, it would go on.
      ...(words === 'serve' && { SLUICE_PORT: 'x' }),
    });
    const said = stdout + stderr;
    assert.doesNotMatch(said, />( …)? is missing/, `${words}: ${said}`);
    return { code, said };
  }

  it('sees what there is and changes no row of any table', async () => {
    for (const words of tried()) {
      const before = await fingerprintOf(db1, db2);
      const { code, said } = await run(words, viewer);
      assert.deepEqual([words, changed(before, await fingerprintOf(db1, db2))], [words, []], said);
      const [least] = COMMAND_ROLES[words] ?? [];
      if (least === 'viewer') assert.doesNotMatch(said, /needs the role/, words);
      else {
        assert.match(said, /needs the role/, words);
        assert.equal(code, 1, words);
      }
    }
  });

  it('would be found out: an admin who says the same changes something', async () => {
    const changing = tried()
      .filter((words) => COMMAND_ROLES[words]?.[0] !== 'viewer' && !(words in UNSEEN))
      // In the order of the attacks: what they need is there until its turn.
      .toSorted((a, b) => Object.keys(attacks()).indexOf(a) - Object.keys(attacks()).indexOf(b));
    for (const words of changing) {
      const before = await fingerprintOf(db1, db2);
      const { said } = await run(words, admin);
      assert.notDeepEqual([words, changed(before, await fingerprintOf(db1, db2))], [words, []], said);
    }
  });
});
