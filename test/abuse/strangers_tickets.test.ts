// What a stranger tries with another buyer's ticket: to make its link without the secret, to change it through its page, and to use
// it up at the entrance without a scanner's key. Beside each attack stands the same without its guard.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { TicketTokens } from '#core/tickets/token.ts';
import type { RunningServer } from '../../src/server/server.ts';
import { nodeHmac } from '../../src/webhook/hmac.ts';
import { addOperator } from '../operators/support.ts';
import { ADMIN_KEY, ask, bearer, openClient, putOnSale, startTestServer, token } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { TICKET_SECRET, type WrittenTicket, writeTicket } from '../tickets/support.ts';

const GUESSED_SECRET = 'a secret that the stranger has thought of';
const guessed = new TicketTokens([GUESSED_SECRET], nodeHmac);
const POOL = 'gala';

describe('a stranger and a ticket', () => {
  let databases: TestDatabases;
  let db1: pg.Client;
  let db2: pg.Client;
  let server: RunningServer;
  /** Its operator has let the stranger's secret into the list. */
  let careless: RunningServer;
  let scanner: string;
  let viewer: string;
  before(async () => {
    databases = await startDatabases();
    db1 = await openClient(databases.db1.url);
    db2 = await openClient(databases.db2.url);
    await putOnSale(db1, POOL, 1);
    await db1.query(`select public.set_pool_details($1, $2, 'olga')`, [
      POOL,
      { title: 'Gala <script>alert(1)</script>', place: '"><img src=x onerror=alert(2)>' },
    ]);
    scanner = await addOperator(db1, 'north gate', 'scanner');
    viewer = await addOperator(db1, 'a viewer', 'viewer');
    server = await startTestServer(databases, { ticketSecrets: [TICKET_SECRET] });
    careless = await startTestServer(databases, { ticketSecrets: [TICKET_SECRET, GUESSED_SECRET] });
    for (const { url } of [server, careless]) while ((await check(url, 'x', scanner)).status === 401);
  });
  after(async () => {
    await Promise.all([server?.stop(), careless?.stop(), db1?.end(), db2?.end()]);
    await databases?.stop();
  });

  const open = (url: string, path: string, method = 'GET') => ask(`${url}/t/${path}`, { method });
  const check = (url: string, given: string, key?: string) =>
    ask(`${url}/v1/tickets/check`, {
      method: 'POST',
      ...(key !== undefined && { headers: bearer(key) }),
      body: { token: given },
    });
  const uses = async ({ claimId }: WrittenTicket): Promise<number> =>
    (await db2.query('select from public.ticket_uses where claim_id = $1', [claimId])).rowCount ?? 0;
  const swapCase = (text: string) =>
    text.replace(/[a-z]/i, (letter) =>
      letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
    );

  /** By what they are: the id of the claim is known, as to the seller of the seat. */
  async function forgeries({ claimId, token: own }: WrittenTicket): Promise<Record<string, string>> {
    const id = Buffer.from(claimId.replaceAll('-', ''), 'hex');
    const other = await writeTicket(db2, POOL);
    return {
      'the id alone': claimId,
      'the id without a signature': id.toString('base64url'),
      'a signature of zeros': Buffer.concat([id, Buffer.alloc(16)]).toString('base64url'),
      "another ticket's signature": Buffer.concat([
        id,
        Buffer.from(other.token, 'base64url').subarray(16),
      ]).toString('base64url'),
      'a signature by another secret': await guessed.tokenOf(claimId),
      'half of the signature': own.slice(0, -11),
      'a bit more': `${own}A`,
      'another case': swapCase(own),
      'padding behind it': `${own}=`,
      // The last letter holds two bits that mean nothing.
      'a second spelling of the same bytes': own.slice(0, -1) + nextSpelling(own.at(-1) ?? ''),
    };
  }

  it('makes no link that opens or admits without the secret, and does with it', async () => {
    const ticket = await writeTicket(db2, POOL);
    for (const [name, forged] of Object.entries(await forgeries(ticket))) {
      const page = await open(server.url, encodeURIComponent(forged));
      assert.equal(page.status, 404, name);
      assert.doesNotMatch(page.text, /Gala|class="qr"/, name);
      assert.deepEqual(
        [name, (await check(server.url, forged, scanner)).json.outcome],
        [name, 'unknown'],
        'at the entrance',
      );
    }
    assert.equal(await uses(ticket), 0);
    const forged = await guessed.tokenOf(ticket.claimId);
    assert.equal((await open(careless.url, forged)).status, 200);
    assert.equal((await check(careless.url, forged, scanner)).json.outcome, 'valid');
  });

  it('costs the databases nothing with links that are forged', async () => {
    const away = await startTestServer(
      { ...databases, db2: { url: 'postgres://127.0.0.1:1/none' } },
      { ticketSecrets: [TICKET_SECRET] },
    );
    try {
      const ticket = await writeTicket(db2, POOL);
      assert.equal((await open(away.url, await guessed.tokenOf(ticket.claimId))).status, 404);
      assert.equal((await open(away.url, ticket.token)).status, 503, 'a good one asks the ledger');
    } finally {
      await away.stop();
    }
  });

  it('comes to no ticket by tricks with the path, and to none of the inside', async () => {
    const { token: own } = await writeTicket(db2, POOL);
    const tricks = [
      `/${own}`,
      `${own}/`,
      `${own}/x/y`,
      `x/../${own}`,
      `%2e%2e/${own}`,
      `${own}%00`,
      `${own};x=1`,
      `${own}%2f`,
      '%ff%fe',
      'x'.repeat(8_000),
      `${encodeURIComponent('<script>alert(1)</script>')}`,
      `${encodeURIComponent(`' or 1=1; --`)}`,
    ];
    for (const trick of tricks) {
      const { status, text } = await open(server.url, trick);
      assert.ok(status === 404 || status === 400, `${trick.slice(0, 60)}: ${status}`);
      assert.doesNotMatch(text, /Gala|alert\(|or 1=1|at .*\.ts|SL0\d\d/, trick.slice(0, 60));
    }
    // The control of this row: without a trick it opens.
    assert.equal((await open(server.url, own)).status, 200);
  });

  it('changes nothing by other methods, and runs nothing in the reader’s browser', async () => {
    const ticket = await writeTicket(db2, POOL);
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const { status, headers } = await open(server.url, ticket.token, method);
      assert.deepEqual([status, headers.allow], [405, 'GET, HEAD'], method);
    }
    const { status, text, headers } = await open(server.url, ticket.token);
    assert.equal(status, 200);
    assert.match(text, /Gala &#60;script&#62;/);
    assert.doesNotMatch(text, /<script|<img/);
    assert.match(String(headers['content-security-policy']), /^default-src 'self';(?!.*unsafe-inline)/);
    assert.equal(headers['cache-control'], 'no-store');
    // The holder of the link is not told who bought it.
    assert.doesNotMatch(text, /\bann\b/);
    assert.equal(await uses(ticket), 0, 'looking at a ticket does not use it');
  });

  it('uses up no ticket without the key of a scanner, and does with it', async () => {
    const ticket = await writeTicket(db2, POOL);
    const keys: Record<string, [key: string | undefined, answer: string]> = {
      'no key': [undefined, '401 auth_required'],
      'a key that is not one': ['not-a-key', '401 auth_required'],
      "a buyer's token": [await token({ role: 'authenticated', sub: 'ann' }), '401 auth_required'],
      'the public key': [await token({ role: 'anon' }), '401 auth_required'],
      "the link's own token": [ticket.token, '401 auth_required'],
      'a viewer': [viewer, '403 role_refused'],
    };
    for (const [name, [key, answer]] of Object.entries(keys)) {
      const { status, json } = await check(server.url, ticket.token, key);
      assert.equal(`${status} ${json.error?.code}`, answer, name);
    }
    assert.equal(await uses(ticket), 0);
    assert.equal((await check(server.url, ticket.token, scanner)).json.outcome, 'valid');
    assert.equal(await uses(ticket), 1);
  });

  it('does nothing else with a key of a scanner', async () => {
    for (const [method, path] of [
      ['GET', '/admin/orders'],
      ['GET', '/admin/claims'],
      ['POST', '/admin/refunds/send'],
      ['POST', '/admin/claims/void'],
      ['GET', '/admin/audit'],
    ] as const) {
      const body = method === 'POST' ? { body: {} } : {};
      const { status } = await ask(server.url + path, { method, headers: bearer(scanner), ...body });
      assert.equal(status, 403, path);
    }
    const { status } = await ask(`${server.url}/admin/orders`, { headers: bearer(ADMIN_KEY) });
    assert.equal(status, 200, 'an admin does');
  });
});

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** Another letter whose upper four bits are the same. */
function nextSpelling(letter: string): string {
  const at = ALPHABET.indexOf(letter);
  return ALPHABET[at - (at % 4) + ((at + 1) % 4)] ?? '';
}
