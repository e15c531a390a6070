// The provider for all senders without an adapter of their own: data describes its signature (scheme.ts).

import type { JsonValue } from '../../json.ts';
import { SchemaError } from '../../schema.ts';
import { fromBase64, fromHex, prepend, toBase64, toHex, utf8 } from '../bytes.ts';
import type { HashName } from '../hmac.ts';
import type { Provider, Scheme, SignedRequest, VerifyContext } from '../provider.ts';
import { hashOf, readOne } from '../read.ts';
import { follow, isPointer, readScheme } from '../scheme.ts';
import {
  type Claimed,
  signatureFrom,
  signatureHeader,
  timestampFrom,
  verifyClaim,
  withoutPrefix,
} from '../signature.ts';

const KEYS = { utf8, base64: fromBase64, hex: fromHex };
const HASHES = { sha256: 'SHA-256', sha1: 'SHA-1' } as const satisfies Record<string, HashName>;

const checked = new WeakMap<Scheme, Scheme>();

/** A scheme comes from a table: it is checked before the first use, and one that fails verifies nothing. */
function schemeOf({ scheme }: VerifyContext): Scheme {
  if (scheme === undefined) throw new SchemaError('the endpoint has none.');
  let known = checked.get(scheme);
  if (known === undefined) {
    known = readScheme(scheme as unknown as JsonValue);
    checked.set(scheme, known);
  }
  return known;
}

function signedBytes({ signed }: Scheme, body: Uint8Array, timestamp: string, id: string): Uint8Array {
  const [before = '', after = ''] = signed.split('{body}');
  const fill = (text: string): string =>
    text.replace(/\{(timestamp|id)\}/g, (_, name) => (name === 'id' ? id : timestamp));
  const head = prepend(fill(before), body);
  if (after === '') return head;
  const tail = utf8(fill(after));
  const joined = new Uint8Array(head.length + tail.length);
  joined.set(head);
  joined.set(tail, head.length);
  return joined;
}

function claimOf(request: SignedRequest, scheme: Scheme): Claimed {
  const hash = HASHES[scheme.algorithm];
  const text = withoutPrefix(signatureHeader(request, scheme.header), scheme.prefix);
  const timestamp = scheme.timestamp_header && signatureHeader(request, scheme.timestamp_header);
  const id = scheme.signed.includes('{id}') ? signatureHeader(request, scheme.id) : '';
  return {
    hash,
    signatures: [signatureFrom(text, scheme.encoding === 'hex' ? fromHex : fromBase64, hash)],
    messages: [signedBytes(scheme, request.body, timestamp ?? '', id)],
    ...(timestamp !== null && { timestamp: timestampFrom(timestamp), toleranceSec: scheme.tolerance_sec }),
  };
}

export const hmac: Provider = {
  name: 'hmac',
  verify(request, secrets, context) {
    let scheme: Scheme;
    try {
      scheme = schemeOf(context);
    } catch (error) {
      if (!(error instanceof SchemaError)) throw error;
      return { ok: false, reason: 'no_secret', detail: `no usable signature scheme: ${error.message}` };
    }
    return verifyClaim(() => claimOf(request, scheme), secrets, KEYS[scheme.secret_encoding], context);
  },
  read(request, context) {
    const { id, type, signed } = schemeOf(context);
    return readOne(request, context, {
      describe: (body) => ({
        id: isPointer(id) ? follow(id, body) : request.headers[id],
        type: type === null ? undefined : follow(type, body),
        occurredAt: null,
      }),
      ...(!isPointer(id) && !signed.includes('{id}') && { dedupe: 'body' }),
    });
  },
  async sign({ body }, secret, context) {
    const scheme = schemeOf(context);
    const key = KEYS[scheme.secret_encoding](secret);
    if (key === undefined) throw new TypeError(`the secret is not ${scheme.secret_encoding}`);
    const id = isPointer(scheme.id) ? '' : `evt_${(await hashOf(context.port, body)).slice(0, 32)}`;
    const timestamp = String(context.nowSec);
    const bytes = signedBytes(scheme, body, timestamp, id);
    const mac = await context.port.hmac(HASHES[scheme.algorithm], key, bytes);
    return {
      [scheme.header]: scheme.prefix + (scheme.encoding === 'hex' ? toHex(mac) : toBase64(mac)),
      ...(scheme.timestamp_header && { [scheme.timestamp_header]: timestamp }),
      ...(id && { [scheme.id]: id }),
    };
  },
};
