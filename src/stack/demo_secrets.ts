import type { Secrets } from './keys.ts';

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
