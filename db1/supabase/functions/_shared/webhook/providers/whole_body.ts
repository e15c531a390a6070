// WhatsApp, GitHub and Shopify sign the body and nothing else: one header, no timestamp.

import { fromBase64, fromHex, toBase64, toHex, utf8 } from '../bytes.ts';
import type { Provider, SignedRequest } from '../provider.ts';
import { type Described, decode, type JsonObject, type ReadRules, readText } from '../read.ts';
import { signatureFrom, signatureHeader, verifyClaim, withoutPrefix } from '../signature.ts';

const PAYLOAD = utf8('payload=');

type Header = SignedRequest['headers'][string];

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

/** Reads an event whose id and type come in headers that are not signed, so that the body has to be a key as well (`dedupe`). */
export function readsHeaders(
  idHeader: string,
  typeHeader: string,
  dedupe: ReadRules['dedupe'] & string,
  describe: (id: Header, type: Header, body: JsonObject) => Described,
): Provider['read'] {
  return ({ headers, body }, context) => {
    const { [idHeader]: id, [typeHeader]: type } = headers;
    const rules: ReadRules = { describe: (value) => describe(id, type, value), dedupe };
    const json = payloadField(body);
    return readText(json ?? decode(body), context, { ...rules, isWholeBody: json === undefined });
  };
}

/** The JSON of a form, as GitHub can be told to send it. The content type is not signed; the first bytes are. */
function payloadField(body: Uint8Array): string | undefined {
  if (!startsWith(body, PAYLOAD)) return undefined;
  return new URLSearchParams(decode(body)).get('payload') ?? undefined;
}

function startsWith(body: Uint8Array, start: Uint8Array): boolean {
  return start.every((byte, at) => body[at] === byte);
}
