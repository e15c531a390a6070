// Real processes of node:cluster. A process that SIGSTOP stops leaves on its way what was sent to it, for as long as the test wants.

import assert from 'node:assert/strict';
import cluster, { type Worker } from 'node:cluster';
import { EventEmitter, once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { Connections } from '../../src/processes/connections.ts';
import type { Told } from './accepter.ts';

/** A connection that node:cluster has lost is never answered and never closed. */
const PATIENCE_MS = 10_000;
const LOST = 'neither answered nor closed';

interface Accepter {
  readonly worker: Worker;
  /** Emits `connection` when one is sent to it, and `refusal` when it says that it does not take one. */
  readonly seen: EventEmitter;
  readonly port: number;
}

describe('a connection that is passed to a process', () => {
  const connections = new Connections();
  const workers = new Set<Worker>();
  after(async () => {
    for (const worker of workers) await kill(worker);
  });

  /** As the supervisor starts one. */
  const start = async (): Promise<Accepter> => {
    cluster.schedulingPolicy = cluster.SCHED_RR;
    const exec = join(import.meta.dirname, 'accepter.ts');
    cluster.setupPrimary({ exec, args: [], execArgv: ['--import', 'tsx'] });
    const worker = cluster.fork();
    workers.add(worker);
    const seen = new EventEmitter();
    const { process: child } = worker;
    const send = child.send.bind(child) as (...args: unknown[]) => boolean;
    child.send = (...args: unknown[]): boolean => {
      if (args[1] !== undefined && args[1] !== null) seen.emit('connection');
      return send(...args);
    };
    child.on('internalMessage', ({ accepted }: { accepted?: boolean }) => {
      if (accepted === false) seen.emit('refusal');
    });
    connections.watch(worker);
    worker.on('error', () => undefined);
    worker.once('exit', () => {
      workers.delete(worker);
      connections.drop(worker);
    });
    const [{ port }] = await once(worker, 'listening');
    return { worker, seen, port };
  };

  it('and that it refuses while it stops is answered by another, also where the others are busy', async () => {
    const [leaver, stayer] = [await start(), await start()];
    const sent = [leaver, stayer].map(({ seen }) => once(seen, 'connection'));
    for (const { worker } of [leaver, stayer]) worker.process.kill('SIGSTOP');
    tell(leaver, 'close');
    const asked = [1, 2].map(() => answer(connect(leaver.port, '127.0.0.1')));
    await Promise.all(sent);
    const refused = once(leaver.seen, 'refusal');
    leaver.worker.process.kill('SIGCONT');
    await refused;
    await kill(leaver.worker);
    stayer.worker.process.kill('SIGCONT');
    const stays = String(stayer.worker.id);
    assert.deepEqual(await Promise.all(asked), [stays, stays]);
    assert.equal(await answer(connect(stayer.port, '127.0.0.1')), stays, 'and it is sent more');
    await kill(stayer.worker);
  });

  it('right after the one before arrived is closed when the process is killed', async () => {
    const victim = await start();
    const first = once(victim.seen, 'connection');
    victim.worker.process.kill('SIGSTOP');
    tell(victim, 'hang');
    const sockets = [connect(victim.port, '127.0.0.1'), connect(victim.port, '127.0.0.1')];
    const asked = sockets.map(answer);
    await Promise.all([first, ...sockets.map((socket) => once(socket, 'connect'))]);
    const second = once(victim.seen, 'connection');
    victim.worker.process.kill('SIGCONT');
    await second;
    await kill(victim.worker);
    assert.deepEqual(await Promise.all(asked), ['', '']);
  });
});

function tell({ worker }: Accepter, told: Told): void {
  worker.send(told);
}

async function kill(worker: Worker): Promise<void> {
  const gone = once(worker, 'exit');
  worker.process.kill('SIGKILL');
  await gone;
}

/** What came until it was closed. */
async function answer(socket: Socket): Promise<string> {
  let got = '';
  socket.setEncoding('utf8').on('data', (text) => {
    got += text;
  });
  // A connection that a process closes unread is reset.
  socket.on('error', () => undefined);
  socket.setTimeout(PATIENCE_MS, () => {
    got = LOST;
    socket.destroy();
  });
  await once(socket, 'close');
  return got;
}
