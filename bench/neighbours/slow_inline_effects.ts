import { addSlowEndpoint, crowd, deliver, type Neighbour } from './neighbour.ts';

const EFFECT_SEC = 7;
const CLIENTS = 8;

export const slowInlineEffects: Neighbour = {
  name: 'slow_inline_effects',
  finding: 'N1',
  about: `${CLIENTS} inline events at once whose SQL handler takes ${EFFECT_SEC} s`,
  healthy: 'events',
  prepare: (place) => addSlowEndpoint(place, 'inline', EFFECT_SEC),
  start: async (place, times) => crowd(CLIENTS * times, (signal) => deliver(place, signal)),
};
