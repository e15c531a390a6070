// The webhooks that pools call: they validate and commit, refuse who is to be refused, and misbehave when told to.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { TargetCall } from './history.ts';
import type { TARGET_MOODS } from './schedule.ts';

/** The last two are for the target of the hostile pools alone: late, and wrong in every way by turns. */
export type Mood = (typeof TARGET_MOODS)[number] | 'slow' | 'failing';

/** Users whose names begin like this are refused by validation, always. */
export const REFUSED_USER = 'refused-';
/** The pool whose commits are refused, always: its claims can only become dead letters. */
export const PICKY_POOL = 'picky';

export type Target = {
  /** Host and port. */
  host: string;
  validateUrl: string;
  commitUrl: string;
  begin(mood: Mood): void;
  heal(): void;
  /** Resolves with the next call: then a worker carries messages. */
  nextCall(): Promise<void>;
  close(): Promise<void>;
};

const OK = 200;
const REFUSED = 422;
const BROKEN = 500;
const ELSEWHERE = 302;
/** Of a hook that answers late, and within its deadline. */
const SLOW_MS = 6_000;
/** A failure of each class: of the target, of its way, of its patience, of its address; a cut connection, no answer. */
const FAILURES = [500, 503, 429, 404, 'resetting', 'hanging'] as const;

/** `onCall` is told before the answer leaves, so that what the caller knows has been noted. */
export async function startTarget(onCall: (call: Omit<TargetCall, 'at'>) => void): Promise<Target> {
  let mood: Mood | undefined;
  let calls = 0;
  const hanging = new Set<ServerResponse>();
  const listeners: (() => void)[] = [];

  const answer = (request: IncomingMessage, response: ServerResponse, text: string): void => {
    const { pool_id: poolId, user_id: userId } = JSON.parse(text) as { pool_id: string; user_id: string };
    const kind = request.url === '/validate' ? 'validate' : 'commit';
    const call = { kind, key: String(request.headers['x-claim-id']), poolId } as const;
    const isRefused = kind === 'validate' ? userId.startsWith(REFUSED_USER) : poolId === PICKY_POOL;
    const say = (status: number): void => {
      onCall({ ...call, status });
      response.writeHead(status, status === ELSEWHERE ? { location: '/elsewhere' } : {}).end();
    };
    for (const tell of listeners.splice(0)) tell();
    const failure = mood === 'failing' ? FAILURES[++calls % FAILURES.length] : mood;
    if (failure === 'hanging') {
      onCall({ ...call, status: 'none' });
      hanging.add(response);
      response.once('close', () => hanging.delete(response));
    } else if (failure === 'resetting') {
      onCall({ ...call, status: 'none' });
      request.socket.destroy();
    } else if (typeof failure === 'number') say(failure);
    else if (mood === 'slow') setTimeout(() => say(isRefused ? REFUSED : OK), SLOW_MS);
    else if (mood === 'redirecting') say(ELSEWHERE);
    else if (mood === 'flapping' && ++calls % 2 === 0) say(BROKEN);
    else say(isRefused ? REFUSED : OK);
  };

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    // A worker that is killed in the middle of a call leaves half of one; nothing was asked then.
    request.on('error', () => undefined);
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => answer(request, response, Buffer.concat(chunks).toString()));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the target has no port');
  const host = `127.0.0.1:${address.port}`;
  return {
    host,
    validateUrl: `http://${host}/validate`,
    commitUrl: `http://${host}/commit`,
    begin(next) {
      mood = next;
    },
    heal() {
      mood = undefined;
      for (const response of hanging) response.destroy();
    },
    nextCall: () => new Promise((resolve) => listeners.push(resolve)),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
