// The live stream of the console: what the sampler saw, sent to all who watch.

import type { LiveSample } from '#core/console/sample.ts';
import { HttpError } from '#core/errors.ts';
import type { Follow, HttpResponse } from '#core/router.ts';

export const EVENT_STREAM: Readonly<Record<string, string>> = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  // Proxies of the nginx kind would keep events until they have a bufferful.
  'x-accel-buffering': 'no',
};

export function eventText(event: string, data: unknown): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Operators with many tabs, not a crowd. */
const MAX_LISTENERS = 1_000;

export class LiveView {
  readonly #listeners = new Set<(text: string) => boolean>();
  #latest: string | undefined;

  /** The same text for all: a sample costs the same whether one watches or two hundred. */
  publish(sample: LiveSample): void {
    this.#latest = eventText('sample', sample);
    for (const send of this.#listeners) send(this.#latest);
  }

  /** `event: sample` at once where there is one, then every two seconds. What was before is in GET /admin/samples. */
  answer(): HttpResponse {
    if (this.#listeners.size >= MAX_LISTENERS) throw new HttpError('overloaded');
    return { status: 200, headers: EVENT_STREAM, body: '', follow: this.#follow };
  }

  readonly #follow: Follow = (send, closed) => {
    if (this.#latest !== undefined) send(this.#latest);
    this.#listeners.add(send);
    closed.addEventListener('abort', () => this.#listeners.delete(send));
  };
}
