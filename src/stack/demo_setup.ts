// The endpoints and the call site of `npm start`. Their secrets are named here, the values are in `.sluice/env`.

import { toHttpError } from '#core/failure.ts';
import { createDatabase, type Database } from '../db/database.ts';
import { createLog } from '../log.ts';

type DemoEndpoint = { name: string; secret: string; settings?: Record<string, unknown> };

/** One for each provider with a handler. They take live and test events, because people mostly try out test events. */
const DEMO_ENDPOINTS: DemoEndpoint[] = [
  { name: 'stripe', secret: 'STRIPE_WEBHOOK_SECRET' },
  { name: 'twilio', secret: 'TWILIO_AUTH_TOKEN' },
  {
    name: 'whatsapp',
    secret: 'WHATSAPP_APP_SECRET',
    settings: { verify_token_name: 'WHATSAPP_VERIFY_TOKEN' },
  },
  { name: 'daily', secret: 'DAILY_WEBHOOK_SECRET' },
];
const ACTOR = 'npm start';

/** Sets up what is missing; an endpoint that exists stays as it is. */
export function addDemoEndpoints(db2Url: string): Promise<void> {
  return withLedger(db2Url, async (db2) => {
    for (const { name, secret, settings = {} } of DEMO_ENDPOINTS) {
      await db2
        .call('webhook.add_endpoint', {
          p_name: name,
          p_provider: name,
          p_secret_names: [secret],
          p_mode: 'queued',
          p_settings: { livemode: 'both', ...settings },
          p_actor: ACTOR,
          p_reason: 'demo endpoint',
        })
        .catch((error: unknown) => {
          if (toHttpError(error).kind.code !== 'endpoint_exists') throw error;
        });
    }
  });
}

/** A site that exists stays as it is. */
export function addDemoSite(db2Url: string, siteId: string): Promise<void> {
  return withLedger(db2Url, async (db2) => {
    await db2.call('calls.add_site', {
      p_site_id: siteId,
      p_secret_names: ['OPS_SITE_SECRET'],
      p_require_signature: true,
      p_kinds: null,
      p_actor: ACTOR,
      p_reason: 'demo site',
    });
  });
}

async function withLedger(url: string, work: (db2: Database) => Promise<void>): Promise<void> {
  const db2 = createDatabase({ url, max: 1, applicationName: 'sluice-setup', log: createLog() });
  try {
    await work(db2);
  } finally {
    await db2.end();
  }
}
