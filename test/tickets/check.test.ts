import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { TicketTokens } from '#core/tickets/token.ts';
import { nodeHmac } from '../../src/webhook/hmac.ts';
import { addOperator } from '../operators/support.ts';
import {
  ADMIN_KEY,
  ask,
  assertRefusal,
  bearer,
  openClient,
  startTestServer,
  token,
} from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { TICKET_SECRET, tokens, voidTicket, type WrittenTicket, writeTicket } from './support.ts';

type Server = Awaited<ReturnType<typeof startTestServer>>;

describe('POST /v1/tickets/check', () => {
  let databases: TestDatabases;
  let db1: pg.Client;
  let db2: pg.Client;
  let servers: Server[];
  let scanner: string;
  let other: string;
  let viewer: string;
  let operator: string;
  before(async () => {
    databases = await startDatabases();
    db1 = await openClient(databases.db1.url);
    db2 = await openClient(databases.db2.url);
    scanner = await addOperator(db1, 'north gate', 'scanner');
    other = await addOperator(db1, 'south gate', 'scanner');
    viewer = await addOperator(db1, 'a viewer', 'viewer');
    operator = await addOperator(db1, 'an operator', 'operator');
    const start = () => startTestServer(databases, { ticketSecrets: [TICKET_SECRET] });
    servers = [await start(), await start()];
    for (const server of servers) await known(server, scanner);
  });
  after(async () => {
    await Promise.all([db1?.end(), db2?.end(), ...(servers ?? []).map((server) => server.stop())]);
    await databases?.stop();
  });

  const check = (given: string, key = scanner, server = servers[0]) =>
    ask(`${server?.url}/v1/tickets/check`, { method: 'POST', headers: bearer(key), body: { token: given } });

  /** A server that has just started may not have read whose keys there are. */
  async function known(server: Server, key: string): Promise<Server> {
    while ((await check('x', key, server)).status === 401);
    return server;
  }

  it('says valid once; the second is told since when it is used, and by whom', async () => {
    const ticket = await writeTicket(db2, 'gala');
    const first = await check(ticket.token);
    assert.equal(first.status, 200, first.text);
    assert.equal(first.headers['cache-control'], 'no-store');
    const { outcome, pool_id, resource_id, used_by, used_at } = first.json;
    assert.deepEqual(
      { outcome, pool_id, resource_id, used_by },
      { outcome: 'valid', pool_id: 'gala', resource_id: ticket.resourceId, used_by: 'north gate' },
    );
    const second = await check(ticket.token, other, servers[1]);
    assert.equal(second.status, 200);
    assert.equal(second.json.outcome, 'used');
    assert.equal(second.json.used_by, 'north gate');
    assert.equal(second.json.used_at, used_at);
    // It is not the scanner's business whose ticket it is.
    assert.doesNotMatch(first.text + second.text, /ann/);
  });

  it('takes the link as the code has it', async () => {
    const ticket = await writeTicket(db2, 'gala');
    const { json } = await check(`https://tickets.example.com/t/${ticket.token}`);
    assert.equal(json.outcome, 'valid');
  });

  it('knows no forged, truncated or foreign token, and no claim that is not a ticket', async () => {
    const ticket = await writeTicket(db2, 'gala');
    const foreign = new TicketTokens(['a secret that this server has never had'], nodeHmac);
    const forged = [
      await foreign.tokenOf(ticket.claimId),
      ticket.token.slice(0, -1),
      ticket.claimId,
      `/t/`,
      await tokens.tokenOf('0199b1f4-6c1e-7abc-8def-0123456789ab'),
    ];
    for (const given of forged) {
      const { status, json } = await check(given);
      assert.equal(status, 200, given);
      assert.deepEqual(json, {
        outcome: 'unknown',
        used_at: null,
        used_by: null,
        pool_id: null,
        resource_id: null,
        title: null,
        seat: null,
      });
    }
    assert.equal((await check(ticket.token)).json.outcome, 'valid');
  });

  it('takes a token from before a rotation while its secret is in the list', async () => {
    const ticket = await writeTicket(db2, 'gala');
    const secrets = ['a new secret, long enough too', TICKET_SECRET];
    const rotated = await startTestServer(databases, { ticketSecrets: secrets });
    const later = await startTestServer(databases, { ticketSecrets: secrets.slice(0, 1) });
    try {
      assert.equal((await check(ticket.token, ADMIN_KEY, later)).json.outcome, 'unknown');
      assert.equal((await check(ticket.token, ADMIN_KEY, rotated)).json.outcome, 'valid');
    } finally {
      await Promise.all([rotated.stop(), later.stop()]);
    }
  });

  it('says voided of a ticket that was taken back, used or not', async () => {
    const [fresh, used] = [await writeTicket(db2, 'gala'), await writeTicket(db2, 'gala')];
    await check(used.token);
    await voidTicket(db2, fresh);
    await voidTicket(db2, used);
    const answers = [await check(fresh.token), await check(used.token)];
    assert.deepEqual(
      answers.map(({ json }) => [json.outcome, json.used_by]),
      [
        ['voided', null],
        ['voided', 'north gate'],
      ],
    );
  });

  it('is for scanners, operators and admins', async () => {
    const ticket = await writeTicket(db2, 'gala');
    assertRefusal(await check(ticket.token, viewer), 403, 'role_refused');
    assertRefusal(await check(ticket.token, 'not a key'), 401, 'auth_required');
    const buyer = await token({ role: 'authenticated', sub: 'ann' });
    assertRefusal(await check(ticket.token, buyer), 401, 'auth_required');
    assert.equal((await check(ticket.token, operator)).json.outcome, 'valid');
    assert.equal((await check(ticket.token, ADMIN_KEY)).json.outcome, 'used');
  });

  it('refuses a body without a token, and says where tickets have no links', async () => {
    const url = `${servers[0]?.url}/v1/tickets/check`;
    const post = (body: unknown) => ask(url, { method: 'POST', headers: bearer(scanner), body });
    for (const body of [{}, { token: '' }, { token: 1 }, { token: 'x'.repeat(501) }, { token: 'x', more: 1 }])
      assertRefusal(await post(body), 422, 'invalid_input');
    const without = await startTestServer(databases);
    try {
      assertRefusal(await check('x', ADMIN_KEY, without), 404, 'no_ticket_links');
    } finally {
      await without.stop();
    }
  });

  it('tells the ticket while the intake is away, without its seat', async () => {
    const ticket = await writeTicket(db2, 'gala');
    const alone = await startTestServer(
      { ...databases, db1: { url: 'postgres://127.0.0.1:1/none' } },
      { ticketSecrets: [TICKET_SECRET] },
    );
    try {
      const { status, json } = await check(ticket.token, ADMIN_KEY, alone);
      assert.equal(status, 200);
      assert.deepEqual([json.outcome, json.title], ['valid', null]);
    } finally {
      await alone.stop();
    }
  });

  /** Each ticket is checked at both servers at once, by two scanners each; how many were told that it is valid. */
  async function race(tickets: readonly WrittenTicket[]): Promise<number[]> {
    return Promise.all(
      tickets.map(async (ticket) => {
        const asked = servers.flatMap((server) =>
          [scanner, other].map((key) => check(ticket.token, key, server)),
        );
        const answers = await Promise.all(asked);
        const outcomes = answers.map(({ json }) => json.outcome);
        assert.equal(outcomes.filter((outcome) => outcome === 'valid' || outcome === 'used').length, 4);
        // Who came second is told who was first.
        assert.equal(new Set(answers.map(({ json }) => json.used_by)).size, 1);
        return outcomes.filter((outcome) => outcome === 'valid').length;
      }),
    );
  }

  it('says valid to exactly one of four scanners at two servers, a hundred times', async () => {
    const tickets = [];
    for (let n = 0; n < 100; n++) tickets.push(await writeTicket(db2, 'gala'));
    assert.deepEqual([...new Set(await race(tickets))], [1]);
  });

  it('is seen to say it twice where the key of the uses is gone', async () => {
    await db2.query('alter table public.ticket_uses drop constraint ticket_uses_pkey');
    try {
      const ticket = await writeTicket(db2, 'gala');
      const outcomes = [await check(ticket.token), await check(ticket.token, other)];
      assert.deepEqual(
        outcomes.map(({ json }) => json.outcome),
        ['valid', 'valid'],
      );
    } finally {
      await db2.query('truncate public.ticket_uses');
      await db2.query('alter table public.ticket_uses add primary key (claim_id)');
    }
  });
});
