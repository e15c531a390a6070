// Standard Webhooks, and Svix, which is the same under other header names.

import { fromBase64, prepend, toBase64 } from '../bytes.ts';
import type { Provider, SignedRequest } from '../provider.ts';
import { hashOf, isoOfAny, readOne } from '../read.ts';
import { Refused, signatureFrom, signatureHeader, timedClaim, verifyClaim } from '../signature.ts';

const SECRET_PREFIX = 'whsec_';
const VERSIONED = /^(v[0-9][a-z0-9]*),(\S+)$/;

function claimOf(request: SignedRequest) {
  const family = familyOf(request);
  const parts = signatureHeader(request, `${family}-signature`).split(' ');
  const signatures = parts.flatMap((part) => {
    const [, version, value] = VERSIONED.exec(part) ?? [];
    if (version === undefined || value === undefined)
      throw new Refused('malformed_signature', 'the header is not a list of version,signature');
    // Other versions are asymmetric or still to come.
    return version === 'v1' ? [signatureFrom(value, fromBase64)] : [];
  });
  if (signatures.length === 0) throw new Refused('missing_signature', 'the header has no signature v1');
  const id = signatureHeader(request, `${family}-id`);
  const timestamp = signatureHeader(request, `${family}-timestamp`);
  return timedClaim(signatures, `${id}.${timestamp}.`, request.body, timestamp);
}

/** All three headers are read from one family, so that the id is the one that was signed. */
function familyOf({ headers }: SignedRequest): 'webhook' | 'svix' {
  return headers['webhook-signature'] === undefined && headers['svix-signature'] !== undefined
    ? 'svix'
    : 'webhook';
}

function keyOf(secret: string): Uint8Array | undefined {
  return fromBase64(secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : secret);
}

export const standard: Provider = {
  name: 'standard',
  // The standard asks for 24 bytes, in base64.
  minSecretChars: 32,
  verify: (request, secrets, context) => verifyClaim(() => claimOf(request), secrets, keyOf, context),
  read: (request, context) => {
    const id = request.headers[`${familyOf(request)}-id`];
    return readOne(request, context, {
      describe: ({ type, timestamp }) => ({ id, type, occurredAt: isoOfAny(timestamp) }),
    });
  },
  /** The id is the sender's to choose; here it follows from the body, so that signing twice makes one event. */
  async sign({ body }, secret, { port, nowSec }) {
    const key = keyOf(secret);
    if (key === undefined) throw new TypeError('the secret is not base64');
    const id = `msg_${(await hashOf(port, body)).slice(0, 32)}`;
    const mac = await port.hmac('SHA-256', key, prepend(`${id}.${nowSec}.`, body));
    return {
      'webhook-id': id,
      'webhook-timestamp': String(nowSec),
      'webhook-signature': `v1,${toBase64(mac)}`,
    };
  },
};
