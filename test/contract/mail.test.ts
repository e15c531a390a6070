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
  let status = 200;
  const service = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      const { to, text } = JSON.parse(body);
      if (status === 200) mails.push({ key: String(request.headers['idempotency-key']), to, text });
      response.writeHead(status).end();
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

  it('are sent by the next run where the mail service refused', async () => {
    const order = await world.bought('opera', 'eva', 'pi_eva');
    status = 503;
    assert.notEqual((await run()).code, 0);
    status = 200;
    assert.equal((await run()).code, 0);
    assert.deepEqual(
      mails.slice(1).map(({ key }) => key),
      [`tickets-${order.order_id}`],
    );
  });
});
