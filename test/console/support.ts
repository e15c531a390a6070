// A reader of streams, and of the events in them.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';

export interface StreamReader {
  response: IncomingMessage;
  /** The next piece that arrives; undefined at the end. */
  next(): Promise<string | undefined>;
  /** Leaves, as a browser whose tab is closed does. */
  leave(): void;
}

/** Opens a connection of its own for each stream, without keep-alive. */
export async function openStream(url: string, headers: Record<string, string> = {}): Promise<StreamReader> {
  const request = get(url, { headers, agent: false });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  response.setEncoding('utf8');
  const pieces = response.iterator();
  request.on('error', () => undefined);
  return {
    response,
    async next() {
      const { value, done } = await pieces.next();
      return done ? undefined : (value as string);
    },
    leave: () => void request.destroy(),
  };
}

export interface StreamEvent {
  event: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever came and asserts on it.
  data: any;
}

export interface EventReader {
  /** The next event of this name; others are passed over. */
  next(event: string): Promise<StreamEvent>;
  leave(): void;
}

/** Reads server-sent events; comments are passed over. */
export async function openEvents(url: string, headers: Record<string, string> = {}): Promise<EventReader> {
  const stream = await openStream(url, headers);
  assert.equal(stream.response.statusCode, 200);
  assert.equal(stream.response.headers['content-type'], 'text/event-stream');
  let text = '';
  const nextBlock = async (): Promise<string> => {
    for (;;) {
      const end = text.indexOf('\n\n');
      if (end >= 0) {
        const block = text.slice(0, end);
        text = text.slice(end + 2);
        return block;
      }
      const piece = await stream.next();
      assert(piece !== undefined, 'the stream ended');
      text += piece;
    }
  };
  return {
    async next(wanted) {
      for (;;) {
        const block = await nextBlock();
        const event = /^event: (.*)$/m.exec(block)?.[1];
        const data = /^data: (.*)$/m.exec(block)?.[1];
        if (event === wanted && data !== undefined) return { event, data: JSON.parse(data) };
      }
    },
    leave: stream.leave,
  };
}
