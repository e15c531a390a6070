import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { HandWorld } from '../orders/hand_world.ts';
import { runCommand } from '../run/command.ts';
import { ADMIN_KEY } from '../server/support.ts';
import { PROJECT } from '../support/dev.ts';
import { blocksOf, readPage } from './docs.ts';

const PAGE = readPage('paid_tickets.md');

interface Mail {
  key: string;
  to: string;
  text: string;
}

describe('the mails of docs/paid_tickets.md', () => {
  let world: HandWorld;
  let dir: string;
  const mails: Mail[] = [];
  /** This address the service refuses. */
  let refused = '';
  const service = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      const { to, text } = JSON.parse(body);
      if (to !== refused) mails.push({ key: String(request.headers['idempotency-key']), to, text });
      response.writeHead(to === refused ? 503 : 200).end();
    });
  });

  before(async () => {
    world = await HandWorld.start({ ticketSecrets: ['a-secret-of-the-tickets-of-32-bytes'] });
    await world.putOnSale('opera', 20);
    await world.db2.query(blocksOf(PAGE, 'sql').find((block) => block.includes('ticket_mails')) ?? '');
    await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
    dir = mkdtempSync(join(tmpdir(), 'sluice-mail-'));
    symlinkSync(join(PROJECT, 'node_modules'), join(dir, 'node_modules'));
    writeFileSync(join(dir, 'package.json'), '{"type": "module"}');
    const program = blocksOf(PAGE, 'ts').find((block) => block.startsWith('// mail_tickets.ts'));
    writeFileSync(join(dir, 'mail_tickets.ts'), program ?? '');
  });
  after(async () => {
    service.close();
    await world?.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  const run = () => {
    const env = {
      DB2_URL: world.databases.db2.url,
      SLUICE_URL: world.server.url,
      SLUICE_OPERATOR_KEY: ADMIN_KEY,
      MAIL_URL: `http://127.0.0.1:${(service.address() as AddressInfo).port}/`,
    };
    const words = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    return runCommand('env', [...words, process.execPath, '--import', 'tsx', 'mail_tickets.ts'], {
      cwd: dir,
    });
  };

  it('are one for each order, with the links of all its tickets, however often the program runs', async () => {
    const order = await world.bought('opera', 'ann', 'pi_ann', 2);
    await world.order('opera', 'bob');
    for (const again of [false, true]) {
      const { code, output } = await run();
      assert.equal(code, 0, output);
      assert.equal(mails.length, 1, again ? 'the second run mails nothing' : 'held seats are not mailed');
    }
    const [mail] = mails;
    assert.deepEqual([mail?.key, mail?.to], [`tickets-${order.order_id}`, 'ann@example.com']);
    const links = [...(mail?.text ?? '').matchAll(/\/t\/\S+/g)].map(([path]) => path);
    assert.equal(new Set(links).size, 2);
    for (const path of links) assert.equal((await fetch(world.server.url + path)).status, 200, path);
  });

  /** Whom the next run mails. */
  const mailed = async (code: number): Promise<string[]> => {
    const known = mails.length;
    const ended = await run();
    assert.equal(ended.code, code, ended.output);
    return mails.slice(known).map(({ to }) => to);
  };

  it('are sent by the next run where the mail service refused, and to all others at once', async () => {
    await world.bought('opera', 'eva', 'pi_eva');
    await world.bought('opera', 'fay', 'pi_fay');
    refused = 'eva@example.com';
    assert.deepEqual(await mailed(1), ['fay@example.com']);
    refused = '';
    assert.deepEqual(await mailed(0), ['eva@example.com']);
  });

  it('are sent to all others where the server does not know an order', async () => {
    const lost = '00000000-0000-7000-8000-000000000001';
    await world.db2.query('insert into public.ticket_mails (order_id, user_id) values ($1, $2)', [
      lost,
      'lost',
    ]);
    await world.bought('opera', 'gil', 'pi_gil');
    assert.deepEqual(await mailed(1), ['gil@example.com']);
    await world.db2.query('delete from public.ticket_mails where order_id = $1', [lost]);
  });

  it('are not sent for an order that was voided before', async () => {
    const { claims } = await world.bought('opera', 'hal', 'pi_hal');
    const body = { claim_ids: claims, refund: true, reason: 'rain' };
    assert.equal((await world.post('/admin/claims/void', body)).status, 200);
    await world.carry();
    assert.deepEqual([await mailed(0), await mailed(0)], [[], []]);
    const open = 'select count(*)::int as n from public.ticket_mails where mailed_at is null';
    assert.equal((await world.db2.query(open)).rows[0].n, 0, 'and it is done');
  });

  it('wait for a paid seat that is a dead letter, and then have all seats', async () => {
    const order = await world.order('opera', 'ida', 2);
    await world.pay(order, await world.checkout(order), 'pi_ida');
    await world.carry();
    const kill = `select public.intake_route_to_dlq(q.msg_id, q.message || '{"reason": "test"}', 0) as msg_id
      from pgmq.q_intake_queue q where q.message ->> 'claim_id' = $1`;
    const [letter] = (await world.db1.query(kill, [order.claims[1]])).rows;
    await world.bridge();
    assert.deepEqual(await mailed(0), []);
    const body = { msg_ids: [Number(letter.msg_id)], reason: 'mended' };
    assert.equal((await world.post('/admin/dlq/replay', body)).status, 200);
    await world.bridge();
    assert.deepEqual(await mailed(0), ['ida@example.com']);
    assert.equal([...(mails.at(-1)?.text ?? '').matchAll(/\/t\//g)].length, 2);
  });
});
