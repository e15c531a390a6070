import type { Secrets } from './keys.ts';
import type { Side, Stack } from './stack.ts';

/** `.sluice/env`: everything a person or a script needs to talk to the running stack, as a dotenv file. */
export function envFile(stack: Stack, sluiceUrl: string): string {
  const { secrets } = stack;
  const values: Record<string, string> = {
    SLUICE_URL: sluiceUrl,
    SLUICE_ADMIN_KEY: secrets.adminKey,
    SLUICE_HOOK_SECRET: secrets.hookSecret,
    SLUICE_TICKET_SECRET: secrets.ticketSecret,
    DB1_URL: stack.db1.url,
    DB2_URL: stack.db2.url,
    ...supabaseValues('DB1', stack.db1),
    ...supabaseValues('DB2', stack.db2),
    ...demoSecrets(secrets),
    ...stripeValues(stack),
  };
  return Object.entries(values)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');
}

/** Nothing where the person uses Stripe itself. */
export function stripeValues({ stripe }: Pick<Stack, 'stripe'>): Record<string, string> {
  return stripe === undefined ? {} : { STRIPE_API_URL: stripe.url, STRIPE_API_KEY: stripe.key };
}

function supabaseValues(prefix: string, side: Side): Record<string, string> {
  return {
    [`${prefix}_SUPABASE_URL`]: side.gateway.url,
    [`${prefix}_SUPABASE_ANON_KEY`]: side.keys.anon,
    [`${prefix}_SUPABASE_SERVICE_ROLE_KEY`]: side.keys.serviceRole,
  };
}

/** The demo site's id, and the secrets of the demo endpoints and that site by the names under which those know them. */
export function demoSecrets(secrets: Secrets): Record<string, string> {
  return {
    STRIPE_WEBHOOK_SECRET: secrets.stripeWebhookSecret,
    TWILIO_AUTH_TOKEN: secrets.twilioAuthToken,
    WHATSAPP_APP_SECRET: secrets.whatsappAppSecret,
    WHATSAPP_VERIFY_TOKEN: secrets.whatsappVerifyToken,
    DAILY_WEBHOOK_SECRET: secrets.dailyWebhookSecret,
    OPS_SITE_ID: secrets.opsSiteId,
    OPS_SITE_SECRET: secrets.opsSiteSecret,
  };
}
