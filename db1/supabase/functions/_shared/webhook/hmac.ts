// The two hashes that signatures need, as a port: WebCrypto answers with promises on every runtime, and node:crypto answers
// at once and several times faster, so that the Node server passes its own (src/webhook/hmac.ts).

export type HashName = 'SHA-1' | 'SHA-256';

export interface HmacPort {
  hmac(hash: HashName, key: Uint8Array, message: Uint8Array): Uint8Array | Promise<Uint8Array>;
  sha256(bytes: Uint8Array): Uint8Array | Promise<Uint8Array>;
}

export const webHmac: HmacPort = {
  async hmac(hash, key, message) {
    const imported = await crypto.subtle.importKey('raw', owned(key), { name: 'HMAC', hash }, false, [
      'sign',
    ]);
    return new Uint8Array(await crypto.subtle.sign('HMAC', imported, owned(message)));
  },
  async sha256(bytes) {
    return new Uint8Array(await crypto.subtle.digest('SHA-256', owned(bytes)));
  },
};

/** WebCrypto's types refuse bytes that could lie in shared memory; ours never do. */
function owned(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return bytes as Uint8Array<ArrayBuffer>;
}

/** Takes as long for a difference in the first byte as for none, so that the time of an answer tells nothing. */
export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let index = 0; index < a.length; index++) difference |= (a[index] as number) ^ (b[index] as number);
  return difference === 0;
}
