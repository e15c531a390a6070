import { randomUUID } from 'node:crypto';
import { addSlowEndpoint, crowd, deliver, type Neighbour } from './neighbour.ts';

const EFFECT_SEC = 7;
/** Clients that deliver the very same event again and again. */
const CLIENTS = 4;
const ONE_EVENT_MS = 10_000;

export const redeliveredInlineEvent: Neighbour = {
  name: 'redelivered_inline_event',
  finding: 'N2',
  about: `an inline event whose handler takes ${EFFECT_SEC} s, delivered ${CLIENTS} times at once`,
  healthy: 'events',
  prepare: (place) => addSlowEndpoint(place, 'inline', EFFECT_SEC),
  async start(place, times) {
    let id = randomUUID();
    let sinceMs = performance.now();
    return crowd(CLIENTS * times, (signal) => {
      // The next event when this one has ended: a duplicate of an ended one costs nothing.
      if (performance.now() - sinceMs > ONE_EVENT_MS) {
        id = randomUUID();
        sinceMs = performance.now();
      }
      return deliver(place, signal, id);
    });
  },
};
