import { fromHex, prepend, toHex, utf8 } from '../bytes.ts';
import type { Provider, SignedRequest } from '../provider.ts';
import { isoOfSeconds, isoOfText, readOne } from '../read.ts';
import {
  type GivenSignature,
  Refused,
  signatureFrom,
  signatureHeader,
  timedClaim,
  verifyClaim,
} from '../signature.ts';

const HEADER = 'stripe-signature';
const PART = /^([a-z][a-z0-9]*)=([^=]+)$/;

/** `t=…,v1=…[,v1=…]`: v1 may come once per secret during a rotation; v0 and schemes to come are passed over. */
function claimOf(request: SignedRequest) {
  const signatures: GivenSignature[] = [];
  let timestamp: string | undefined;
  for (const part of signatureHeader(request, HEADER).split(',')) {
    const [, name, value] = PART.exec(part) ?? [];
    if (name === undefined || value === undefined)
      throw new Refused('malformed_signature', 'the header is not a list of name=value');
    if (name === 't') {
      if (timestamp !== undefined) throw new Refused('malformed_signature', 'there are two timestamps');
      timestamp = value;
    } else if (name === 'v1') {
      signatures.push(signatureFrom(value, fromHex));
    }
  }
  if (timestamp === undefined) throw new Refused('malformed_signature', 'the header has no timestamp t=');
  if (signatures.length === 0) throw new Refused('missing_signature', 'the header has no signature v1=');
  return timedClaim(signatures, `${timestamp}.`, request.body, timestamp);
}

/** How many deliveries are still open changes from one delivery to the next; all else is the event. */
const OPEN_DELIVERIES = /"pending_webhooks":\s*[0-9]+/g;

export const stripe: Provider = {
  name: 'stripe',
  // The key is the secret as it is written, `whsec_` included.
  verify: (request, secrets, context) => verifyClaim(() => claimOf(request), secrets, utf8, context),
  read: (request, context) =>
    readOne(request, context, {
      // A thin event (v2) writes its time as text.
      describe: ({ id, type, created }) => ({
        id,
        type,
        occurredAt: typeof created === 'string' ? isoOfText(created) : isoOfSeconds(created),
      }),
      contentOf: (text) => text.replace(OPEN_DELIVERIES, ''),
    }),
  async sign({ body }, secret, { port, nowSec }) {
    const mac = await port.hmac('SHA-256', utf8(secret), prepend(`${nowSec}.`, body));
    return { [HEADER]: `t=${nowSec},v1=${toHex(mac)}` };
  },
};
