// A wire between two processes that can be slow, cut, silent in one direction, or lose the reply to a request that has
// arrived. It never corrupts: a client that lost bytes loses its connection too, as with TCP.

import { connect, createServer, type Socket } from 'node:net';
import type { Random } from './random.ts';

export type Trouble =
  | { kind: 'delay'; ms: number }
  /** Open connections break, new ones are refused. */
  | { kind: 'cut' }
  /** One direction is swallowed; neither side is told. */
  | { kind: 'half-open'; swallows: 'requests' | 'replies' }
  /** A request passes; the connection breaks when its reply arrives, with this probability per reply. */
  | { kind: 'cut-after-request'; probability: number };

export type WireProxy = {
  port: number;
  begin(trouble: Trouble): void;
  /** What was swallowed is lost: such connections break now. */
  heal(): void;
  /** Pieces that are held up now, and how many were ever swallowed. */
  state(): { waiting: number; swallowed: number };
  close(): Promise<void>;
};

const HOST = '127.0.0.1';

/** One direction of a wire. Bytes wait in one line, so that none overtakes those before it when a delay ends. */
class Lane {
  readonly #to: Socket;
  readonly #waiting: { bytes: Buffer; dueMs: number }[] = [];

  constructor(to: Socket) {
    this.#to = to;
  }

  pass(bytes: Buffer, delayMs: number): void {
    if (delayMs === 0 && this.#waiting.length === 0) this.#to.write(bytes);
    else {
      this.#waiting.push({ bytes, dueMs: performance.now() + delayMs });
      if (this.#waiting.length === 1) this.#arm();
    }
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  #arm(): void {
    const [first] = this.#waiting;
    if (first === undefined) return;
    setTimeout(() => {
      this.#waiting.shift();
      if (!this.#to.destroyed) this.#to.write(first.bytes);
      this.#arm();
    }, first.dueMs - performance.now());
  }
}

type Wire = {
  client: Socket;
  target: Socket;
  requests: Lane;
  replies: Lane;
  awaitsReply: boolean;
  lostBytes: boolean;
};

export async function startProxy(targetPort: () => number, random: Random): Promise<WireProxy> {
  const wires = new Set<Wire>();
  let trouble: Trouble | undefined;
  let swallowed = 0;

  const swallow = (wire: Wire): void => {
    wire.lostBytes = true;
    swallowed++;
  };
  const end = (wire: Wire): void => {
    wires.delete(wire);
    wire.client.destroy();
    wire.target.destroy();
  };
  const delayMs = (): number => (trouble?.kind === 'delay' ? trouble.ms : 0);

  const onRequest = (wire: Wire, bytes: Buffer): void => {
    wire.awaitsReply = true;
    if (trouble?.kind === 'half-open' && trouble.swallows === 'requests') swallow(wire);
    else wire.requests.pass(bytes, delayMs());
  };
  const onReply = (wire: Wire, bytes: Buffer): void => {
    const isFirst = wire.awaitsReply;
    wire.awaitsReply = false;
    if (trouble?.kind === 'half-open' && trouble.swallows === 'replies') swallow(wire);
    else if (trouble?.kind === 'cut-after-request' && isFirst && random.chance(trouble.probability))
      end(wire);
    else wire.replies.pass(bytes, delayMs());
  };

  const server = createServer((client) => {
    if (trouble?.kind === 'cut') {
      client.destroy();
      return;
    }
    const target = connect(targetPort(), HOST);
    const wire: Wire = {
      client,
      target,
      requests: new Lane(target),
      replies: new Lane(client),
      awaitsReply: false,
      lostBytes: false,
    };
    wires.add(wire);
    for (const socket of [client, target]) {
      socket.setNoDelay(true);
      // A broken end is what this is for; the other end learns of it by its close.
      socket.on('error', () => undefined);
      socket.on('close', () => end(wire));
    }
    client.on('data', (bytes: Buffer) => onRequest(wire, bytes));
    target.on('data', (bytes: Buffer) => onReply(wire, bytes));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, HOST, resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
  return {
    port: address.port,
    begin(next) {
      trouble = next;
      if (next.kind === 'cut') for (const wire of wires) end(wire);
    },
    heal() {
      trouble = undefined;
      for (const wire of wires) if (wire.lostBytes) end(wire);
    },
    state: () => ({
      waiting: [...wires].reduce((sum, { requests, replies }) => sum + requests.waiting + replies.waiting, 0),
      swallowed,
    }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const wire of wires) end(wire);
      }),
  };
}
