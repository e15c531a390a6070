// WhatsApp, GitHub and Shopify sign the body and nothing else: one header, no timestamp.

import { fromBase64, fromHex, toBase64, toHex, utf8 } from '../bytes.ts';
import type { Provider } from '../provider.ts';
import { type Described, type JsonObject, readOne } from '../read.ts';
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

/**
 * Reads an event whose id and type come in headers that nobody signs, so that the body's hash is a key as well. `describe`
 * says what the body knows better.
 */
export function readsHeaders(
  idHeader: string,
  typeHeader: string,
  describe: (type: string | string[] | undefined, body: JsonObject) => Omit<Described, 'id'>,
): Provider['read'] {
  return (request, context) => {
    const { [idHeader]: id, [typeHeader]: type } = request.headers;
    return readOne(request, context, {
      describe: (body) => ({ id, ...describe(type, body) }),
      keyOnBody: true,
    });
  };
}
