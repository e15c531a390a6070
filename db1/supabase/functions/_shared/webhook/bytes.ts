// Bytes and their spellings. A signature is accepted in one spelling only: a replay that spells the same bytes in a second way
// (upper-case hex, base64 without its padding) would get past every index and cache that knows the first.

const encoder = new TextEncoder();

export function utf8(text: string): Uint8Array {
  return encoder.encode(text);
}

/** `before` in UTF-8, then the body. */
export function prepend(before: string, body: Uint8Array): Uint8Array {
  if (before === '') return body;
  const head = encoder.encode(before);
  const joined = new Uint8Array(head.length + body.length);
  joined.set(head);
  joined.set(body, head.length);
  return joined;
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

export function toHex(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += HEX[byte];
  return text;
}

/** Undefined for all but lower-case hex. */
export function fromHex(text: string): Uint8Array | undefined {
  if (text.length % 2 !== 0 || !/^[0-9a-f]*$/.test(text)) return undefined;
  const bytes = new Uint8Array(text.length / 2);
  for (let index = 0; index < bytes.length; index++) {
    bytes[index] = (digit(text.charCodeAt(index * 2)) << 4) | digit(text.charCodeAt(index * 2 + 1));
  }
  return bytes;
}

/** The value of one of 0-9 and a-f. */
function digit(unit: number): number {
  return unit < 0x3a ? unit - 0x30 : unit - 0x57;
}

export function toBase64(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

/** Undefined for all but padded base64 in the standard alphabet whose unused last bits are zero. */
export function fromBase64(text: string): Uint8Array | undefined {
  let decoded: string;
  try {
    decoded = atob(text);
  } catch {
    return undefined;
  }
  // atob forgives spaces, missing padding and stray last bits; encoding again shows what it forgave.
  return btoa(decoded) === text ? Uint8Array.from(decoded, (unit) => unit.charCodeAt(0)) : undefined;
}

/** As fromBase64, of what we have encoded ourselves; throws for anything else. */
export function bytesOf(text: string): Uint8Array {
  const bytes = fromBase64(text);
  if (bytes === undefined) throw new TypeError('the text is not base64');
  return bytes;
}
