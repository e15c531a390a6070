// How much is taken from an address that signs nothing, or signs wrongly. A valid signature is never asked about: a neighbour at
// the same address cannot keep it out.

import type { HttpRequest } from './router.ts';

/**
 * Edge Functions have none: an instance knows neither the caller's address nor the other instances. Where several processes count
 * together, a promise tells.
 */
export interface UnsignedLimit {
  /** Counts a delivery without a valid signature. Throws the refusal where its address has sent too many of them. */
  count(request: HttpRequest): Promise<void> | undefined;
  /** Throws likewise, and counts nothing: for a delivery that has no signature at all, before its body is read. */
  check(request: HttpRequest): Promise<void> | undefined;
}

/** Every provider's signature stands in a header of such a name; a scheme of an endpoint's own names its header. */
const SIGNATURE_HEADER = /signature|hmac/;

/** False where no header can hold a signature: the body need not be read to refuse it. */
export function maySign(headers: HttpRequest['headers'], ownHeader?: string): boolean {
  if (ownHeader !== undefined) return headers[ownHeader] !== undefined;
  return Object.keys(headers).some((name) => SIGNATURE_HEADER.test(name));
}
