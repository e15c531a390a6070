// Why signatures fail in practice: the request is tried again with what usually went wrong put right.

import type { Provider, SignedRequest, VerifyContext } from '#core/webhook/provider.ts';

/** What each provider signs, for people. */
export const SIGNING_RULES: Readonly<Record<string, string>> = {
  stripe: '<t>.<body>; HMAC-SHA256, hex, in Stripe-Signature; the key is the text whsec_… itself',
  twilio: 'the address and the sorted fields of the form, or the address with bodySHA256; HMAC-SHA1, base64',
  whatsapp: '<body>; HMAC-SHA256, hex, in X-Hub-Signature-256; the key is the app secret',
  daily: '<X-Webhook-Timestamp>.<body>; HMAC-SHA256, base64; the key is the secret decoded from base64',
  github: '<body>; HMAC-SHA256, hex, in X-Hub-Signature-256',
  shopify: '<body>; HMAC-SHA256, base64, in X-Shopify-Hmac-Sha256',
  slack: 'v0:<X-Slack-Request-Timestamp>:<body>; HMAC-SHA256, hex, in X-Slack-Signature',
  standard: '<webhook-id>.<webhook-timestamp>.<body>; HMAC-SHA256, base64; the key is base64 after whsec_',
  hmac: 'what the endpoint’s scheme says',
};

interface Attempt {
  readonly hint: string;
  readonly request: SignedRequest;
  readonly secrets: readonly string[];
}

/** What would have made the request valid. */
export async function findHints(
  provider: Provider,
  request: SignedRequest,
  secrets: readonly string[],
  context: VerifyContext,
): Promise<string[]> {
  const hints: string[] = [];
  for (const { hint, ...attempt } of attempts(request, secrets)) {
    const verification = await provider.verify(attempt.request, attempt.secrets, context);
    // One that is only too old would have been right in its time.
    if (verification.ok || verification.reason === 'stale') hints.push(hint);
  }
  return hints;
}

function attempts(request: SignedRequest, secrets: readonly string[]): Attempt[] {
  const { body, url } = request;
  const text = new TextDecoder().decode(body);
  const withBody = (changed: string): SignedRequest => ({ ...request, body: Buffer.from(changed) });
  const all: (Attempt | false)[] = [
    /[\r\n]$/.test(text) && {
      hint: 'without the newline at its end the body would fit: it was added after the signing',
      request: withBody(text.replace(/[\r\n]+$/, '')),
      secrets,
    },
    text.includes('\r\n') && {
      hint: 'with LF instead of CRLF the body would fit: something changed its line ends',
      request: withBody(text.replaceAll('\r\n', '\n')),
      secrets,
    },
    isOtherJson(text) && {
      hint: 'the body written without spaces would fit: it was parsed and written again',
      request: withBody(JSON.stringify(JSON.parse(text))),
      secrets,
    },
    secrets.some((secret) => secret !== secret.trim()) && {
      hint: 'without the spaces around it the secret would fit',
      request,
      secrets: secrets.map((secret) => secret.trim()),
    },
    url.startsWith('http:') && {
      hint: 'with https the address would fit: a proxy in front of the server ends TLS',
      request: { ...request, url: url.replace(/^http:/, 'https:') },
      secrets,
    },
  ];
  return all.filter((attempt) => attempt !== false);
}

function isOtherJson(text: string): boolean {
  try {
    return JSON.stringify(JSON.parse(text)) !== text;
  } catch {
    return false;
  }
}
