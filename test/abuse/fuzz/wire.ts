// One connection: writes a case, reads until the server has closed it, and takes the answers apart.

import { connect } from 'node:net';
import type { Answer } from '../../server/support.ts';
import type { FuzzCase } from './case.ts';

export interface Exchange {
  readonly answers: readonly Answer[];
  /** What came after the last whole answer, or instead of one. */
  readonly rest: string;
  readonly isHung: boolean;
}

/** Longer than any of the server's own timeouts: a request without an answer by then never gets one. */
const HUNG_MS = 30_000;
const EVENT_STREAM = /\r\ncontent-type: text\/event-stream/i;
const OPENING_BRACE = 0x7b;

export function exchangeCase({ pieces, ending, methods }: FuzzCase, port: number): Promise<Exchange> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let isHung = false;
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    const timer = setTimeout(() => {
      isHung = true;
      socket.destroy();
    }, HUNG_MS);
    socket.on('connect', () => void write());
    const write = async () => {
      for (const piece of pieces) {
        socket.write(piece);
        // A packet of its own for each piece.
        await new Promise((next) => setImmediate(next));
      }
      if (ending === 'half') socket.end();
      if (ending === 'reset') socket.resetAndDestroy();
    };
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      // A stream has no end; that it has begun is the answer. Its head may come in two parts.
      const latest = Buffer.concat(chunks.slice(-2)).toString('latin1');
      if (EVENT_STREAM.test(latest) && hasStream(Buffer.concat(chunks), methods)) socket.destroy();
    });
    // A reset is a way to end a connection; what had arrived before counts.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearTimeout(timer);
      resolve({ ...takeApart(Buffer.concat(chunks), methods), isHung });
    });
  });
}

/** Not where it answers a HEAD: that ends, and the next answer comes after it. */
const hasStream = (raw: Buffer, methods: readonly string[]) =>
  takeApart(raw, methods).answers.some(
    ({ headers }, at) => methods[at] !== 'HEAD' && headers['content-type'] === 'text/event-stream',
  );

/** Answers come in the order of the requests; one to HEAD has no body, whatever its length says. */
export function takeApart(raw: Buffer, methods: readonly string[]): { answers: Answer[]; rest: string } {
  const answers: Answer[] = [];
  let at = 0;
  while (at < raw.length) {
    const end = raw.indexOf('\r\n\r\n', at);
    if (end < 0) break;
    const [start = '', ...lines] = raw.toString('latin1', at, end).split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(start)?.[1]);
    if (Number.isNaN(status)) break;
    at = end + 4;
    if (status < 200) continue;
    const headers = Object.fromEntries(
      lines.map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 1).trim(),
      ]),
    );
    // Who could not read the request cannot know either that it was a HEAD.
    const isBodiless = methods[answers.length] === 'HEAD' && raw[at] !== OPENING_BRACE;
    const hasBody = !isBodiless && status !== 204 && status !== 304;
    const length = hasBody ? Number(headers['content-length'] ?? raw.length - at) : 0;
    const text = raw.toString('utf8', at, at + length);
    at += length;
    answers.push({ status, headers, text, json: parse(text) });
  }
  return { answers, rest: raw.toString('latin1', Math.min(at, raw.length)) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
