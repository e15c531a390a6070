// Which role may do what, tried out at every route and command, against a golden table.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import { ADMIN_ROLES, ROLES } from '#core/roles.ts';
import { loadAll } from '../../src/commands/all.ts';
import { commandAt, isGroup, placesOf } from '../../src/commands/grammar.ts';
import { COMMAND_ROLES, type Prover, ruleOf } from '../../src/commands/roles.ts';
import { OperatorAuth } from '../../src/server/operator_auth.ts';
import { runHere } from '../cli/support.ts';
import { ADMIN_KEY, ask, bearer, openClient, startTestServer } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { carry } from './personal_history.ts';
import { addOperator } from './support.ts';

const GOLDEN = fileURLToPath(new URL('./roles.matrix.txt', import.meta.url));
const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';
const HEAD = `${ROLES.map((role) => role.padEnd(10)).join('')}what`;

const line = (may: readonly boolean[], what: string): string =>
  may.map((yes) => (yes ? 'x' : '-').padEnd(10)).join('') + what;

describe('the roles of operators', () => {
  let databases: TestDatabases;
  let server: Awaited<ReturnType<typeof startTestServer>>;
  let db1: pg.Client;
  let keys: Record<string, string>;
  before(async () => {
    databases = await startDatabases();
    server = await startTestServer(databases);
    db1 = await openClient(databases.db1.url);
    keys = {};
    for (const role of ROLES) keys[role] = await addOperator(db1, `the ${role}`, role);
  });
  after(async () => {
    await db1?.end();
    await server?.stop();
    await databases?.stop();
  });

  /** What each role is told at each route, with a request that could have no effect. */
  async function routeLines(): Promise<string[]> {
    const { json } = await ask(`${server.url}/openapi.json`);
    const places = Object.entries<Record<string, unknown>>(json.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => ({ method: method.toUpperCase(), path })),
    );
    const lines: string[] = [];
    for (const { method, path } of places) {
      // Signing in is what one does without a key.
      const isOperators = path.startsWith('/admin') || `${method} ${path}` in ADMIN_ROLES;
      if (!isOperators || `${method} ${path}` === 'POST /admin/session') continue;
      const may: boolean[] = [];
      for (const role of ROLES) {
        const headers = { 'content-type': 'application/json', ...bearer(keys[role] ?? '') };
        const body = method === 'POST' ? '{}' : null;
        const answer = await fetch(server.url + path.replace(/\{\w+\}/, UNKNOWN_ID), {
          method,
          headers,
          body,
        });
        assert.notEqual(answer.status, 401, `${role} ${method} ${path}`);
        may.push(answer.status !== 403);
        if (answer.status === 403) assert.match(await answer.text(), /"role_refused"/);
        // A stream has no end.
        else await answer.body?.cancel();
      }
      lines.push(line(may, `${method} ${path}`));
    }
    return lines.toSorted((a, b) => a.slice(40).localeCompare(b.slice(40)));
  }

  /** Every command, tried out: a server refuses some, others look the key up themselves. Those that reach neither ask for no key. */
  async function commandLines(): Promise<string[]> {
    const env = { DB1_URL: databases.db1.url, DB2_URL: databases.db2.url, SLUICE_URL: server.url };
    const lines: string[] = [];
    for (const words of Object.keys(COMMAND_ROLES)) {
      const [, prover] = ruleOf(words.split(' --')[0]?.split(' ') ?? [], words.split(' --').slice(1));
      const may: boolean[] = [];
      for (const role of ROLES)
        may.push(
          prover === 'none' || (await runs(words, prover, { ...env, SLUICE_OPERATOR_KEY: keys[role] ?? '' })),
        );
      lines.push(line(may, `sluice ${words}${prover === 'server' ? '  (asks the server)' : ''}`));
    }
    return lines;
  }

  /** Whether the role lets the command begin: what it needs beside the role is left out, so that nothing is done. */
  async function runs(words: string, prover: Prover, env: Record<string, string>): Promise<boolean> {
    const running = runHere([...words.split(' '), ...(ARGS[words] ?? [])], {
      ...env,
      ...STOPPED[words],
    });
    const { stderr } = await (words === 'demo' ? withWorkers(running) : running);
    // Arguments are read first: without them the role would not be asked for.
    assert.doesNotMatch(stderr, />( …)? is missing/, words);
    // And a command that asks the server must get there.
    if (prover === 'server') assert.doesNotMatch(stderr, /hint: .*--help/, `${words}: ${stderr}`);
    return !/needs the role/.test(stderr);
  }

  /** The demo ends when its claims are tickets. */
  async function withWorkers<Result>(running: Promise<Result>): Promise<Result> {
    let isOver = false;
    const over = running.finally(() => {
      isOver = true;
    });
    while (!isOver) {
      await carry({ db1Url: databases.db1.url, db2Url: databases.db2.url });
      await sleep(50);
    }
    return over;
  }

  /** Arguments with which the command ends for another reason once its role is enough. */
  const ARGS: Record<string, string[]> = {
    'operators add': ['', '--role', 'viewer'],
    'operators rotate': ['unknown'],
    'operators revoke': ['unknown', '--yes'],
    'hosts allow': ['not a host'],
    'hosts remove': ['nowhere.example'],
    'users export': ['unknown@example.com'],
    'users erase': ['unknown@example.com'],
    'retention set': ['nothing', '7'],
    'webhooks endpoints add': ['x', '--provider', 'stripe'],
    'webhooks endpoints change': ['x', '--max-attempts', '7'],
    'webhooks endpoints rotate': ['x', '--secret-name', 'NO_SUCH_SECRET'],
    'webhooks endpoints disable': ['x'],
    'webhooks endpoints enable': ['x'],
    'webhooks secrets allow': ['not a name'],
    'webhooks secrets remove': ['NO_SUCH_SECRET'],
    'webhooks handlers remove': ['unknown'],
    'webhooks show': [UNKNOWN_ID],
    'webhooks payments name': ['pi_none', 'x'],
    'webhooks inbox replay': ['1'],
    'webhooks inbox discard': ['1'],
    'webhooks backfill': ['x', '--since', '2026-02-24'],
    'pools move': ['x', '--to', 'y'],
    'cells add': ['x'],
    'cells drain': ['x'],
    'webhooks replay': [UNKNOWN_ID, '--reason', 'x'],
    'webhooks skip': [UNKNOWN_ID, '--reason', 'x', '--yes'],
    'webhooks prune': ['--days', '30', '--yes'],
    'calls sites add': ['x', '--secret-name', 'NO_SUCH_SECRET'],
    'calls sites change': ['x', '--on-outage', 'refuse'],
    'calls sites rotate': ['x', '--secret-name', 'NO_SUCH_SECRET'],
    'calls sites disable': ['x'],
    'calls sites enable': ['x'],
    'calls show': [UNKNOWN_ID],
    export: ['/nowhere/at/all'],
    import: ['/nowhere/at/all'],
    work: ['--once'],
    'pools show': ['unknown'],
    'pools create': ['x'.repeat(201)],
    'pools open': ['unknown'],
    'pools close': ['unknown', '--yes'],
    'pools set': ['unknown', '--max-per-user', '2'],
    'pools describe': ['unknown', '--title', 'x'],
    'pools add-slots': ['unknown', '1'],
    'claims find': ['--pool', 'unknown'],
    'claims show': [UNKNOWN_ID],
    'claims release': [UNKNOWN_ID, '--yes'],
    'claims void': [UNKNOWN_ID, '--reason', 'x', '--yes'],
    'orders show': [UNKNOWN_ID],
    'refunds show': ['settle:stripe/none'],
    'refunds send': ['settle:stripe/none', '--yes'],
    'refunds skip': ['settle:stripe/none', '--yes'],
    'issues show': [UNKNOWN_ID],
    'issues replay': [UNKNOWN_ID, '--yes'],
    'issues resolve': [UNKNOWN_ID],
    'dlq show': ['1'],
    'dlq replay': ['1', '--yes'],
    'dlq discard': ['1', '--yes'],
    demo: ['--buyers', '1', '--seats', '1', '--json'],
  };
  /** What keeps a command that would go on from starting. */
  const STOPPED: Record<string, Record<string, string>> = { serve: { SLUICE_PORT: 'x' } };

  it('are those of the golden table, at every route for operators and every command', async () => {
    const table = [HEAD, ...(await routeLines()), '', ...(await commandLines()), ''].join('\n');
    if (process.env.UPDATE_GOLDEN === '1') writeFileSync(GOLDEN, table);
    assert.equal(table, existsSync(GOLDEN) ? readFileSync(GOLDEN, 'utf8') : '');
  });

  it('are declared for every command', async () => {
    const words = Object.entries(await loadAll()).flatMap(([name, command]) =>
      placesOf(name, command)
        .filter((place) => !isGroup(commandAt(place)))
        .map(({ path }) => path.join(' ')),
    );
    const declared = Object.keys(COMMAND_ROLES).filter((key) => !key.includes(' --'));
    assert.deepEqual(declared.toSorted(), words.toSorted());
    assert.throws(() => ruleOf(['pools', 'burn'], []), /no role/);
  });

  it('are declared for every route: one without a role is not served', () => {
    const auth = new OperatorAuth(ADMIN_KEY, Date.now);
    const route = {
      method: 'POST',
      path: '/admin/burn',
      handle: () => ({ status: 200, headers: {}, body: '' }),
    };
    assert.throws(() => auth.guard([route]), /POST \/admin\/burn has no role/);
    assert(
      Object.keys(ADMIN_ROLES).every((key) =>
        /^((GET|POST|DELETE) \/admin\/|POST \/v1\/tickets\/check$)/.test(key),
      ),
    );
  });

  it('hold at the claim doors: a viewer releases no claim', async () => {
    const headers = bearer(keys.viewer ?? '');
    const answer = await ask(`${server.url}/v1/claims/${UNKNOWN_ID}`, { method: 'DELETE', headers });
    assert.equal(answer.status, 403);
    assert.equal(answer.json.error.code, 'role_refused');
    const operator = await ask(`${server.url}/v1/claims/${UNKNOWN_ID}`, {
      method: 'DELETE',
      headers: bearer(keys.operator ?? ''),
    });
    assert.equal(operator.status, 404);
  });
});
