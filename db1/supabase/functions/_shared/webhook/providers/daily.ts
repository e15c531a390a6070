import { fromBase64, prepend, toBase64 } from '../bytes.ts';
import type { Provider } from '../provider.ts';
import { isoOfSeconds, isSaneName, readOne } from '../read.ts';
import { signatureFrom, signatureHeader, timedClaim, verifyClaim } from '../signature.ts';

const SIGNATURE = 'x-webhook-signature';
const TIMESTAMP = 'x-webhook-timestamp';

export const daily: Provider = {
  name: 'daily',
  verify: (request, secrets, context) =>
    verifyClaim(
      () => {
        const signature = signatureFrom(signatureHeader(request, SIGNATURE), fromBase64);
        const timestamp = signatureHeader(request, TIMESTAMP);
        return timedClaim([signature], `${timestamp}.`, request.body, timestamp);
      },
      secrets,
      fromBase64,
      context,
    ),
  read: (request, context) =>
    readOne(request, context, {
      // With `test` and nothing else Daily tries a new webhook. Events of calls are documented without an id.
      describe: ({ id, type, event_ts, test }, hash) =>
        id === undefined && test !== undefined
          ? { id: `test:${hash}`, type: 'test', occurredAt: null }
          : {
              id: id === undefined && isSaneName(type) ? `${type}:${hash}` : id,
              type,
              occurredAt: isoOfSeconds(event_ts),
            },
    }),
  async sign({ body }, secret, { port, nowSec }) {
    const key = fromBase64(secret);
    if (key === undefined) throw new TypeError('the secret is not base64');
    const mac = await port.hmac('SHA-256', key, prepend(`${nowSec}.`, body));
    return { [SIGNATURE]: toBase64(mac), [TIMESTAMP]: String(nowSec) };
  },
};
