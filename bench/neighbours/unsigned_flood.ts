import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { HEALTHY } from './healthy.ts';
import { crowd, type Neighbour, type Place, together } from './neighbour.ts';

const LARGE = 100;
const STALLED = 50;
const BODY_BYTES = 1_000_000;
const PIECE = Buffer.alloc(BODY_BYTES / 20, 'x');
/** A body takes 10 s: 100 of them bring 10 MB a second. */
const PIECE_MS = 500;
const STALL_MS = 15_000;

/** An unsigned body, piece by piece, until it is all sent or the server has had enough. */
async function send(place: Place, signal: AbortSignal, endpoint: string, pieces: number): Promise<void> {
  const socket = connect({ port: place.port, host: '127.0.0.1', signal });
  socket.on('error', () => undefined).resume();
  const closed = new Promise((resolve) => socket.once('close', resolve));
  try {
    socket.write(
      `POST /webhooks/${endpoint} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${BODY_BYTES}\r\n\r\n`,
    );
    for (let sent = 0; sent < pieces && !socket.destroyed; sent++) {
      socket.write(PIECE);
      await pause(PIECE_MS, undefined, { signal });
    }
    await Promise.race([closed, pause(pieces === 0 ? STALL_MS : PIECE_MS, undefined, { signal })]);
  } finally {
    socket.destroy();
  }
}

export const unsignedFlood: Neighbour = {
  name: 'unsigned_flood',
  finding: 'N18',
  about: `${LARGE} unsigned bodies of 1 MB at once and ${STALLED} that stall, at endpoints made up and real`,
  healthy: 'claims',
  prepare: async () => undefined,
  async start(place, times) {
    const pieces = BODY_BYTES / PIECE.length;
    return together(
      crowd((LARGE / 2) * times, (signal) => send(place, signal, 'made-up', pieces)),
      crowd((LARGE / 2) * times, (signal) => send(place, signal, HEALTHY, pieces)),
      crowd(STALLED * times, (signal) => send(place, signal, HEALTHY, 0)),
    );
  },
};
