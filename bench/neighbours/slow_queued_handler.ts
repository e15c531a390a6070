import { addSlowEndpoint, boundedSignal, deliver, type Load, type Neighbour } from './neighbour.ts';

const EFFECT_SEC = 0.5;
const EVENTS = 300;
const AT_ONCE = 50;

export const slowQueuedHandler: Neighbour = {
  name: 'slow_queued_handler',
  finding: 'N8',
  about: `${EVENTS} queued events whose SQL handler takes ${EFFECT_SEC} s each`,
  healthy: 'effects',
  prepare: (place) => addSlowEndpoint(place, 'queued', EFFECT_SEC),
  async start(place, times): Promise<Load> {
    const signal = boundedSignal();
    const events = EVENTS * times;
    for (let sent = 0; sent < events; sent += AT_ONCE)
      await Promise.all(Array.from({ length: AT_ONCE }, () => deliver(place, signal)));
    return { sent: () => events, stop: async () => undefined };
  },
};
