// WhatsApp, GitHub and Shopify sign the body and nothing else: one header, no timestamp.

import { fromBase64, fromHex, toBase64, toHex, utf8 } from '../bytes.ts';
import type { Provider } from '../provider.ts';
import { signatureFrom, signatureHeader, verifyClaim, withoutPrefix } from '../signature.ts';

export function signsWholeBody(
  header: string,
  encoding: 'hex' | 'base64',
  prefix: string,
): Pick<Provider, 'verify' | 'sign'> {
  const [decode, encode] = encoding === 'hex' ? [fromHex, toHex] : [fromBase64, toBase64];
  return {
    verify: (request, secrets, context) =>
      verifyClaim(
        () => ({
          hash: 'SHA-256',
          signatures: [signatureFrom(withoutPrefix(signatureHeader(request, header), prefix), decode)],
          messages: [request.body],
        }),
        secrets,
        utf8,
        context,
      ),
    async sign({ body }, secret, { port }) {
      return { [header]: prefix + encode(await port.hmac('SHA-256', utf8(secret), body)) };
    },
  };
}
