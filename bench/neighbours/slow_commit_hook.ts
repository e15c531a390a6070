import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { addPool, claimMany, type Load, type Neighbour } from './neighbour.ts';

const ANSWER_MS = 6_000;
const MESSAGES = 640;
const SLOTS = 20_000;

export const slowCommitHook: Neighbour = {
  name: 'slow_commit_hook',
  finding: 'N7',
  about: `a commit hook that answers 200 after ${ANSWER_MS / 1_000} s, with ${MESSAGES} messages waiting for it`,
  healthy: 'tickets',
  prepare: (place) => addPool(place, 'hostile', SLOTS),
  async start(place, times): Promise<Load> {
    const server = createServer((request, response) => {
      request.resume();
      setTimeout(() => response.writeHead(200).end(), ANSWER_MS);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    // Past the trigger that wants a public address: what allows a host is called otherwise in older versions.
    await place.db1.run(`
      set session_replication_role = replica;
      update public.engine_config set commit_webhook_url = 'http://127.0.0.1:${port}/' where pool_id = 'hostile';
      reset session_replication_role`);
    const messages = MESSAGES * times;
    await claimMany(place, 'hostile', messages);
    return {
      sent: () => messages,
      async stop() {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      },
    };
  },
};
