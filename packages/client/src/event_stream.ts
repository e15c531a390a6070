// Server-sent events out of a response's body. Web globals only.

export interface StreamEvent {
  readonly event: string;
  readonly data: string;
}

/** A line or an event longer than this is not one of ours. */
const MAX_EVENT_CHARS = 1024 * 1024;

/** The server sends something every 15 s. After this long the connection is lost, without a sign of it. */
const SILENCE_MS = 40_000;

/** Ends when the stream does, or is silent for too long. Leaving the loop early cancels the stream. */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  silenceMs = SILENCE_MS,
): AsyncGenerator<StreamEvent, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  let event = 'message';
  let data: string[] = [];
  try {
    for (;;) {
      const timer = setTimeout(() => void reader.cancel().catch(() => undefined), silenceMs);
      const { done, value } = await reader.read().finally(() => clearTimeout(timer));
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      if (rest.length > MAX_EVENT_CHARS) throw new Error('the stream has a line without an end');
      const lines = rest.split(/\r\n|\n/);
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (line === '') {
          if (data.length > 0) yield { event, data: data.join('\n') };
          event = 'message';
          data = [];
        } else if (line.startsWith('event:')) {
          event = textOf(line);
        } else if (line.startsWith('data:')) {
          data.push(textOf(line));
        }
      }
    }
  } finally {
    // A reader that was cancelled for an abort has nothing left to tell.
    await reader.cancel().catch(() => undefined);
  }
}

function textOf(line: string): string {
  return line.slice(line.indexOf(':') + 1).replace(/^ /, '');
}
