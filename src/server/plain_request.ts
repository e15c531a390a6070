// HTTP/1.1 read by hand, for a POST that comes as nearly all do: whole, in one read, with its length. What is anything else, or
// could be read in two ways, is not read here: node:http has a parser for it.

import type { HttpRequest } from '#core/router.ts';

export interface PlainRequest extends Pick<HttpRequest, 'headers'> {
  /** With the query. */
  readonly url: string;
  readonly body: Uint8Array;
  /** False where the client says that it asks nothing more on this connection. */
  readonly isKept: boolean;
}

/** Head and body: a claim has about 300 bytes, with the headers of a browser about 1,000. */
const MAX_BYTES = 8 * 1024;
/** A name is a token (RFC 9110, 5.6.2). Of the values visible ASCII and spaces: behind a length node:http refuses a tab. */
const HEAD = /^POST (\/[!-~]*) HTTP\/1\.1\r\n(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[ -~]*\r\n)+\r\n/;
const LENGTH = /^[0-9]{1,4}$/;
/** Headers that say how the rest is to be read, or by whom, and one of which node:http makes a list. */
const NOT_PLAIN = ['transfer-encoding', 'expect', 'upgrade', 'proxy-connection', 'set-cookie'] as const;

/** Undefined for what node:http has to read. */
export function readPlainRequest(bytes: Buffer): PlainRequest | undefined {
  if (bytes.length > MAX_BYTES) return undefined;
  const text = bytes.toString('latin1');
  const head = HEAD.exec(text);
  if (head === null) return undefined;
  const headBytes = head[0].length;
  const headers = readHeaders(text, headBytes);
  if (headers === undefined || headers.host === undefined) return undefined;
  for (const name of NOT_PLAIN) if (headers[name] !== undefined) return undefined;
  const { 'content-length': length = '', connection = 'keep-alive' } = headers;
  if (!LENGTH.test(length) || headBytes + Number(length) !== bytes.length) return undefined;
  const told = connection.toLowerCase();
  if (told !== 'keep-alive' && told !== 'close') return undefined;
  return {
    url: head[1] as string,
    headers,
    body: bytes.subarray(headBytes),
    isKept: told === 'keep-alive',
  };
}

/** Of a head that has the form. Undefined where a name comes twice: which of them counts depends on the name. */
function readHeaders(text: string, headBytes: number): Record<string, string> | undefined {
  const headers: Record<string, string> = {};
  let at = text.indexOf('\n') + 1;
  for (let end = text.indexOf('\r', at); at < headBytes - 2; end = text.indexOf('\r', at)) {
    const colon = text.indexOf(':', at);
    const name = text.slice(at, colon).toLowerCase();
    // A name that every object has counts as one that came before.
    if (headers[name] !== undefined) return undefined;
    headers[name] = text.slice(colon + 1, end).trim();
    at = end + 2;
  }
  return headers;
}
