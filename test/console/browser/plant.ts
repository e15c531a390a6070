// Three outages, planted on a running house, for a test or for a person who is to find the cause in the console.

import assert from 'node:assert/strict';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { Handler } from '#core/webhook/handlers.ts';
import { ADMIN_KEY, ask, putOnSale } from '../../server/support.ts';
import { selfSigned } from '../../support/certificate.ts';
import { SECRET_NAMES } from '../../webhook/world.ts';
import { claimMany } from '../../work/support.ts';
import { addEndpoint, deliver, onLedger } from './deliveries.ts';
import type { House } from './support.ts';

export const POOL = 'opening_night';
export const HANDLER = 'welcome-mail';
/** What it takes the effect of; no built-in handler has it. */
const TYPE = 'customer.created';
const CLAIMS = 25;
/** Three that fail in a row are an outage of the handler. */
export const EVENTS = 4;
const PATIENCE_MS = 15_000;

export interface Planted {
  /** Takes away what was put up for it. */
  end(): Promise<void>;
}

/** A pool whose validation hook has a certificate that ran out, and that no authority signed; claims wait. */
export async function plantCertificate({ db1 }: House): Promise<Planted> {
  const server = createServer(selfSigned(new Date('2025-12-31T23:59:59Z')), (request, response) => {
    request.resume();
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await putOnSale(db1, POOL, 200, { validation_webhook_url: `https://127.0.0.1:${port}/may-they-buy` });
  await claimMany(db1, POOL, CLAIMS);
  return {
    async end() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const welcome = (apply: Handler['apply']): ReadonlyMap<string, Handler> =>
  new Map([[HANDLER, { name: HANDLER, provider: 'stripe', types: [TYPE], apply }]]);

/** A handler that reads what the provider does not send. Workers run it until `halt`; `mend` starts them with a handler that does not. */
export async function plantHandlerBug(
  house: House,
): Promise<Planted & { halt(): Promise<void>; mend(): void }> {
  await addEndpoint(house, 'stripe', 'stripe');
  let stop = house.startWorkers(
    welcome(async ({ payload }) => `to ${payload.data.object.customer_details.email}`),
  );
  await onLedger(house, async (db2) => {
    const isKnown = async () =>
      (await db2.query('select from public.webhook_handlers where name = $1', [HANDLER])).rowCount;
    for (const end = Date.now() + PATIENCE_MS; !(await isKnown()); await pause(50))
      assert(Date.now() < end, 'the handler was not registered');
  });
  for (let number = 1; number <= EVENTS; number++)
    await deliver(house, 'stripe', TYPE, `evt_1QhZ9wM${number}`);
  return {
    halt: () => stop(),
    mend() {
      stop = house.startWorkers(welcome(async () => 'they have no address'));
    },
    end: () => stop(),
  };
}

/** A server that was started again without the secret of an endpoint; a provider is refused. Give back: `lostSecrets.delete`, and a start. */
export async function plantLostSecret(house: House): Promise<void> {
  await addEndpoint(house, 'phones', 'twilio');
  await restartServer(house, () => house.lostSecrets.add(SECRET_NAMES.twilio ?? ''));
  await assert.rejects(deliver(house, 'twilio', 'message.delivered', 'SM1', { endpoint: 'phones' }));
}

export async function restartServer(house: House, between: () => unknown): Promise<void> {
  await house.stopServer();
  between();
  await house.startServer();
  assert.equal(
    (await ask(`${house.url}/readyz`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } })).status,
    200,
  );
}
