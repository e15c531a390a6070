import { randomUUID } from 'node:crypto';
import { ask, claim, crowd, type Neighbour, together } from './neighbour.ts';

const CLIENTS = 8;

export const madeUpNames: Neighbour = {
  name: 'made_up_names',
  finding: 'N19',
  about: `claims, events and calls for pools, endpoints and sites that do not exist, ${CLIENTS} clients each`,
  healthy: 'claims',
  prepare: async () => undefined,
  async start(place, times) {
    const clients = CLIENTS * times;
    const call = (signal: AbortSignal) => {
      const headers = {
        'x-ops-site': randomUUID(),
        'x-ops-timestamp': String(Math.floor(Date.now() / 1_000)),
        'x-ops-signature': '0'.repeat(64),
      };
      return ask(place, { path: '/call-events', headers, body: '{"kind":"ring"}', signal });
    };
    return together(
      crowd(clients, (signal) => claim(place, `made-up-${randomUUID()}`, signal)),
      crowd(clients, (signal) => ask(place, { path: `/webhooks/${randomUUID()}`, body: '{}', signal })),
      crowd(clients, call),
    );
  },
};
