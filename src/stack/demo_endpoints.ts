import { toHttpError } from '#core/failure.ts';
import { createDatabase } from '../db/database.ts';
import { createLog } from '../log.ts';

type DemoEndpoint = { name: string; secret: string; settings?: Record<string, unknown> };

/** One for each provider with a handler; the secrets are named, their values are in `.sluice/env`. */
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

/** Sets up what is missing; an endpoint that exists stays as it is. */
export async function addDemoEndpoints(db2Url: string): Promise<void> {
  const database = createDatabase({ url: db2Url, max: 1, applicationName: 'sluice-setup', log: createLog() });
  try {
    for (const { name, secret, settings = {} } of DEMO_ENDPOINTS) {
      await database
        .call('webhook.add_endpoint', {
          p_name: name,
          p_provider: name,
          p_secret_names: [secret],
          p_mode: 'queued',
          p_settings: settings,
          p_actor: 'npm start',
          p_reason: 'demo endpoint',
        })
        .catch((error: unknown) => {
          if (toHttpError(error).kind.code !== 'endpoint_exists') throw error;
        });
    }
  } finally {
    await database.end();
  }
}
