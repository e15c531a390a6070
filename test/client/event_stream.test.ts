import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { readEvents, type StreamEvent } from '#client/event_stream.ts';

const SILENCE_MS = 600;

async function eventsOf(pieces: string[]): Promise<StreamEvent[]> {
  const bytes = pieces.map((piece) => new TextEncoder().encode(piece));
  const events: StreamEvent[] = [];
  for await (const event of readEvents(new Blob(bytes).stream() as ReadableStream<Uint8Array>))
    events.push(event);
  return events;
}

/** Each byte alone, so that nothing arrives whole. */
function byByte(text: string): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at < bytes.length) controller.enqueue(bytes.slice(at, ++at));
      else controller.close();
    },
  });
}

describe('readEvents', () => {
  it('reads names, several lines of data and both line ends; drops comments and what is not finished', async () => {
    const text = ': hello\n\nevent: a\ndata: 1\ndata: 2\n\ndata:3\r\n\r\nevent: b\ndata: cut';
    assert.deepEqual(await eventsOf([text]), [
      { event: 'a', data: '1\n2' },
      { event: 'message', data: '3' },
    ]);
  });

  it('puts together what arrives byte by byte, characters of several bytes too', async () => {
    const events: StreamEvent[] = [];
    for await (const event of readEvents(byByte('event: täg\ndata: ✓\n\n'))) events.push(event);
    assert.deepEqual(events, [{ event: 'täg', data: '✓' }]);
  });

  it('cancels the stream when its reader leaves, and refuses a line without an end', async () => {
    let cancelled = false;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new TextEncoder().encode('data: x\n\n')),
      cancel: () => {
        cancelled = true;
      },
    });
    for await (const _ of readEvents(endless)) break;
    assert.ok(cancelled);
    await assert.rejects(eventsOf(['x'.repeat(2 * 1024 * 1024)]), /without an end/);
  });

  it('ends when nothing comes for too long, and not while comments do', async () => {
    const bytes = new TextEncoder();
    let isOpen = true;
    let comments = 0;
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        if (comments++ < 4) {
          await delay(SILENCE_MS / 3);
          controller.enqueue(bytes.encode(comments === 4 ? 'data: x\n\n' : ': still here\n\n'));
        } else await new Promise(() => undefined);
      },
      cancel() {
        isOpen = false;
      },
    });
    const events: StreamEvent[] = [];
    for await (const event of readEvents(body, SILENCE_MS)) events.push(event);
    assert.deepEqual(events, [{ event: 'message', data: 'x' }]);
    assert.equal(isOpen, false, 'the connection is given up');
  });
});
