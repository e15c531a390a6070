// The token in a ticket's link: the claim's id, and a signature that only the holder of the secret can make.

import { fromBase64, fromHex, toBase64, toHex, utf8 } from '../webhook/bytes.ts';
import { type HmacPort, sameBytes } from '../webhook/hmac.ts';

const ID_BYTES = 16;
/** 128 of the 256 bits: too many to guess, and the QR code stays coarse enough for a scratched screen. */
const SIGNATURE_BYTES = 16;
/** 32 bytes in base64url, without padding. */
const TOKEN = /^[A-Za-z0-9_-]{43}$/;
/** As long as the hash: a link tells a guesser offline whether a shorter secret is right. */
export const MIN_TICKET_SECRET_CHARS = 32;

export class TicketTokens {
  readonly #keys: readonly Uint8Array[];
  readonly #hmac: HmacPort['hmac'];

  /** The first secret signs, all of them verify: links that were signed before a rotation stay good while their secret is kept. */
  constructor(secrets: readonly string[], { hmac }: Pick<HmacPort, 'hmac'>) {
    if (secrets.length === 0) throw new Error('tickets need a secret');
    this.#keys = secrets.map(utf8);
    this.#hmac = hmac;
  }

  /** The same claim has the same token each time. */
  async tokenOf(claimId: string): Promise<string> {
    const id = fromHex(claimId.replaceAll('-', '').toLowerCase());
    if (id?.length !== ID_BYTES) throw new TypeError('a ticket has the uuid of its claim');
    const token = new Uint8Array(ID_BYTES + SIGNATURE_BYTES);
    token.set(id);
    token.set(await this.#sign(this.#keys[0] as Uint8Array, id), ID_BYTES);
    return toBase64(token).replaceAll('+', '-').replaceAll('/', '_').replace('=', '');
  }

  /** The id of the claim; undefined for what none of our secrets has signed. */
  async claimOf(token: string): Promise<string | undefined> {
    if (!TOKEN.test(token)) return undefined;
    // fromBase64 refuses a second spelling of the same bytes: a ticket has one link.
    const bytes = fromBase64(`${token.replaceAll('-', '+').replaceAll('_', '/')}=`);
    if (bytes === undefined) return undefined;
    const id = bytes.subarray(0, ID_BYTES);
    const signature = bytes.subarray(ID_BYTES);
    for (const key of this.#keys) if (sameBytes(await this.#sign(key, id), signature)) return uuidOf(id);
    return undefined;
  }

  async #sign(key: Uint8Array, id: Uint8Array): Promise<Uint8Array> {
    return (await this.#hmac('SHA-256', key, id)).subarray(0, SIGNATURE_BYTES);
  }
}

function uuidOf(id: Uint8Array): string {
  return toHex(id).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
