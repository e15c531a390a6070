// Who can deliver webhooks. The server knows how each signs; here are the names, without the code.

export const PROVIDERS = [
  'stripe',
  'twilio',
  'whatsapp',
  'daily',
  'github',
  'shopify',
  'slack',
  'standard',
  'hmac',
] as const;
