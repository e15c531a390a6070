import assert from 'node:assert/strict';
import { type AddressInfo, createServer } from 'node:net';
import { it } from 'node:test';
import { toHttpError } from '#core/failure.ts';
import { createDatabase } from '../../src/db/database.ts';
import { createLog } from '../../src/log.ts';

/** A message of the Postgres protocol: its letter, its length, its content. */
function message(letter: string, content: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(content.length + 4);
  return Buffer.concat([Buffer.from(letter), length, content]);
}

const WELCOME = Buffer.concat([message('R', Buffer.alloc(4)), message('Z', Buffer.from('I'))]);
const FAREWELL = message('E', Buffer.from('SFATAL\0VFATAL\0C57P01\0Munexpected postmaster exit\0\0'));

it('a server that dies in the packet in which it says welcome is an outage, not the end of the process', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.end(Buffer.concat([WELCOME, FAREWELL])));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const url = `postgres://x:x@127.0.0.1:${port}/x`;
  const database = createDatabase({ url, max: 1, applicationName: 'test', log: createLog('silent') });
  await assert.rejects(
    database.call('public.ledger_ready', {}),
    (error) => toHttpError(error).kind.code === 'database_unavailable',
  );
  server.close();
  await database.end();
});
