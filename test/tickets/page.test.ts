import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { addOperator } from '../operators/support.ts';
import { ask, bearer, claim, openClient, putOnSale, startTestServer } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { codeIn, TICKET_SECRET, tokens, voidTicket, writeTicket } from './support.ts';

const PUBLIC = new URL('https://tickets.example.com');

describe("a ticket's page", () => {
  let databases: TestDatabases;
  let db1: pg.Client;
  let db2: pg.Client;
  let server: Awaited<ReturnType<typeof startTestServer>>;
  let key: string;
  before(async () => {
    databases = await startDatabases();
    db1 = await openClient(databases.db1.url);
    db2 = await openClient(databases.db2.url);
    key = await addOperator(db1, 'gate', 'scanner');
    server = await startTestServer(databases, {
      ticketSecrets: [TICKET_SECRET],
      proxy: { trustedProxies: 0, publicUrl: PUBLIC },
    });
  });
  after(async () => {
    await Promise.all([db1?.end(), db2?.end(), server?.stop()]);
    await databases?.stop();
  });

  const open = (token: string, url = server.url) => ask(`${url}/t/${token}`);

  it('shows what, when and where, and a code that reads as its link', async () => {
    await putOnSale(db1, 'gala', 3);
    await db1.query(`select public.set_pool_details($1, $2, 'olga')`, [
      'gala',
      {
        title: 'Gala <night> & "more"',
        starts_at: '2026-07-01T18:00:00Z',
        time_zone: 'Europe/Berlin',
        place: "Großer Saal, 'Haus' 2",
      },
    ]);
    const ticket = await writeTicket(db2, 'gala');
    const { status, headers, text } = await open(ticket.token);
    assert.equal(status, 200, text);
    assert.match(text, /<h1>Gala &#60;night&#62; &#38; &#34;more&#34;<\/h1>/);
    assert.match(text, /Wednesday, 1 July 2026 at 20:00 CEST/);
    assert.match(text, /Großer Saal, &#39;Haus&#39; 2/);
    assert.match(text, /<p class="state">Valid<\/p>/);
    assert.match(text, new RegExp(`${ticket.resourceId.slice(-4).toUpperCase()}`));
    assert.equal(codeIn(text), `https://tickets.example.com/t/${ticket.token}`);
    assert.doesNotMatch(text, /<script|ann</);
    assert.equal(headers['cache-control'], 'no-store');
    assert.equal(headers['referrer-policy'], 'no-referrer');
    assert.match(String(headers['content-security-policy']), /^default-src 'self';/);
    assert.match(String(headers['strict-transport-security']), /^max-age=/);
    const style = /href="(\/assets\/ticket-[A-Z0-9]+\.css)"/.exec(text)?.[1];
    assert.equal((await ask(server.url + style)).status, 200);
  });

  const check = (body: unknown) =>
    ask(`${server.url}/v1/tickets/check`, { method: 'POST', headers: bearer(key), body });

  it('has the name of the pool and the short number where nothing else is known', async () => {
    const ticket = await writeTicket(db2, 'winter_ball');
    const { text } = await open(ticket.token);
    assert.match(text, /<h1>Winter Ball<\/h1>/);
    const number = `${ticket.resourceId.slice(-8, -4)} ${ticket.resourceId.slice(-4)}`.toUpperCase();
    assert(text.includes(`<dd class="seat">${number}</dd>`), text);
  });

  it('shows the label of its seat', async () => {
    await putOnSale(db1, 'stalls', 1);
    await db1.query(`update public.inventory_slots set label = 'Row 7, seat 12' where pool_id = 'stalls'`);
    const { rows } = await db1.query(`select id from public.inventory_slots where pool_id = 'stalls'`);
    const claimId = crypto.randomUUID();
    await db2.query('select public.finalize_transaction($1)', [
      { claim_id: claimId, resource_id: rows[0].id, pool_id: 'stalls', user_id: 'ann', state: 'queued' },
    ]);
    const { text } = await open(await tokens.tokenOf(claimId));
    assert.match(text, /<dd class="seat">Row 7, seat 12<\/dd>/);
  });

  it('says that it was used, and that it was taken back; then it has no code', async () => {
    const ticket = await writeTicket(db2, 'gala');
    const body = { token: ticket.token };
    // A server that has just started may not have read whose keys there are.
    while ((await check(body)).status === 401);
    const used = await open(ticket.token);
    assert.match(used.text, /<p class="state">Used<\/p>/);
    assert.match(used.text, /Checked in on /);
    assert.doesNotMatch(used.text, /gate/);
    await voidTicket(db2, ticket);
    // What was read within the last second is shown again: another server has not read it yet.
    const second = await startTestServer(databases, { ticketSecrets: [TICKET_SECRET] });
    try {
      const voided = await open(ticket.token, second.url);
      assert.equal(voided.status, 200);
      assert.match(voided.text, /<p class="state">Voided<\/p>/);
      assert.match(voided.text, /Taken back on /);
      assert.doesNotMatch(voided.text, /<svg/);
    } finally {
      await second.stop();
    }
  });

  it('is not there for a forged link, for a claim that is not a ticket, and without a secret', async () => {
    const ticket = await writeTicket(db2, 'gala');
    const wrong = [`${ticket.token.slice(0, -2)}xx`, 'x', await tokens.tokenOf(crypto.randomUUID())];
    for (const token of wrong) {
      const { status, text, headers } = await open(token);
      assert.equal(status, 404, token);
      assert.match(String(headers['content-type']), /^text\/html/);
      assert.match(text, /This ticket does not exist/);
    }
    const without = await startTestServer(databases);
    try {
      const { status, text } = await open(ticket.token, without.url);
      assert.equal(status, 404);
      assert.match(text, /Tickets have no links here/);
    } finally {
      await without.stop();
    }
  });

  it('says to come again while the ledger is away', async () => {
    const ticket = await writeTicket(db2, 'gala');
    const nowhere = { ...databases, db2: { url: 'postgres://127.0.0.1:1/none' } };
    const alone = await startTestServer(nowhere, { ticketSecrets: [TICKET_SECRET] });
    try {
      const { status, headers, text } = await open(ticket.token, alone.url);
      assert.equal(status, 503);
      assert.equal(headers['retry-after'], '1');
      assert.match(text, /nothing is lost/);
    } finally {
      await alone.stop();
    }
  });

  it('has a code with the token alone where the server does not know its own address', async () => {
    const ticket = await writeTicket(db2, 'gala');
    const local = await startTestServer(databases, { ticketSecrets: [TICKET_SECRET] });
    try {
      assert.equal(codeIn((await open(ticket.token, local.url)).text), ticket.token);
    } finally {
      await local.stop();
    }
  });

  it('is named by the claim, to its owner alone, once it is a ticket', async () => {
    await putOnSale(db1, 'own', 2);
    const secret = 'a-secret-of-the-buyer';
    const { json } = await claim(server.url, 'own', { user_id: 'ann', secret });
    const look = (headers: Record<string, string> = { 'x-claim-secret': secret }) =>
      ask(`${server.url}/v1/claims/${json.claim_id}`, { headers });
    assert.equal((await look()).json.ticket_url, undefined);
    await db1.query(`update public.claims set state = 'committed' where claim_id = $1`, [json.claim_id]);
    const { ticket_url } = (await look()).json;
    assert.equal(ticket_url, `https://tickets.example.com/t/${await tokens.tokenOf(json.claim_id)}`);
    assert.equal((await look({})).status, 404);
    const without = await startTestServer(databases);
    try {
      const answer = await ask(`${without.url}/v1/claims/${json.claim_id}`, {
        headers: { 'x-claim-secret': secret },
      });
      assert.equal(answer.json.status, 'committed');
      assert.equal(answer.json.ticket_url, undefined);
    } finally {
      await without.stop();
    }
  });
});
