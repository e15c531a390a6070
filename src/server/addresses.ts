// Whose address a request comes from: that of the connection, or what a declared proxy in front says. An IPv4 address counts
// by itself. One of IPv6 counts as its /64: a client that has one address of a /64 has all of them.

import type { HttpRequest } from '#core/router.ts';
import type { ProxySettings } from './proxy.ts';

/** What limits count by, exact: the upper 64 bits of an IPv6 address, or an IPv4 address below a prefix that no client has. */
export interface Network {
  /** Unsigned, 32 bits each. */
  readonly high: number;
  readonly low: number;
}

/** What of a request tells its address. */
export type Source = Pick<HttpRequest, 'peer' | 'headers'>;

/** ffff:ffff::/32 is multicast, which never sends. */
const IPV4_HIGH = 0xffff_ffff;
/** All requests whose address is not known count as one: 0.0.0.0 never sends either. */
const UNKNOWN: Network = { high: IPV4_HIGH, low: 0 };
/** ::1 is the only address of ::/64 that sends. */
const LOOPBACK_IPV6_TEXT = '::/64';
const LOOPBACK_IPV4_BYTE = 127;

const MAPPED = '::ffff:';
const IPV4_WITH_PORT = /^([0-9.]+):[0-9]{1,5}$/;
const BRACKETED = /^\[([^[\]]+)\](?::[0-9]{1,5})?$/;
/** The first group of IPv6 has four digits at most; the shortest IPv4 address has seven characters. */
const MAX_GROUP_DIGITS = 4;
const GROUPS = 8;
const DOT = 46;
const ZERO = 48;
const COLON = 58;
const PERCENT = 37;

export function networkOf({ peer, headers }: Source, { trustedProxies }: ProxySettings): Network {
  if (trustedProxies > 0) {
    // A client writes what it likes further to the left.
    const told = fromRight(String(headers['x-forwarded-for'] ?? ''), trustedProxies);
    const network = told === '' ? undefined : parseAddress(told);
    if (network !== undefined) return network;
  }
  return (peer === undefined ? undefined : parseAddress(peer)) ?? UNKNOWN;
}

/** The same as text: `203.0.113.7`, or `2001:db8:1:2::/64` as Postgres writes it. */
export function addressOf(source: Source, proxy: ProxySettings): string {
  return textOf(networkOf(source, proxy));
}

export function isLoopback({ high, low }: Network): boolean {
  return high === IPV4_HIGH ? low >>> 24 === LOOPBACK_IPV4_BYTE : high === 0 && low === 0;
}

/**
 * With or without a port, in brackets or bare; undefined for what is not an address. Read by hand: every claim asks, and
 * splitting an IPv6 address takes five times as long.
 */
export function parseAddress(text: string): Network | undefined {
  const colon = text.indexOf(':');
  if (colon < 0) return ofIpv4(parseIpv4(text));
  if (text.startsWith('[')) return parseIpv6(BRACKETED.exec(text)?.[1] ?? '');
  if (colon > MAX_GROUP_DIGITS) return ofIpv4(parseIpv4(IPV4_WITH_PORT.exec(text)?.[1] ?? ''));
  // As a socket that listens for both families tells it.
  const mapped = text.startsWith(MAPPED) ? parseIpv4(text.slice(MAPPED.length)) : undefined;
  return mapped === undefined ? parseIpv6(text) : ofIpv4(mapped);
}

function ofIpv4(address: number | undefined): Network | undefined {
  return address === undefined ? undefined : { high: IPV4_HIGH, low: address };
}

export function textOf({ high, low }: Network): string {
  if (high === IPV4_HIGH) return `${low >>> 24}.${(low >>> 16) & 255}.${(low >>> 8) & 255}.${low & 255}`;
  const groups = [high >>> 16, high & 0xffff, low >>> 16, low & 0xffff];
  while (groups.at(-1) === 0) groups.pop();
  if (groups.length === 0) return LOOPBACK_IPV6_TEXT;
  return `${groups.map((group) => group.toString(16)).join(':')}::/64`;
}

/** The part that stands so many commas from the right. Only these are read: a header may hold thousands. */
function fromRight(list: string, place: number): string {
  let end = list.length;
  for (let at = 1; ; at++) {
    const comma = list.slice(0, end).lastIndexOf(',');
    if (at === place) return list.slice(comma + 1, end).trim();
    if (comma < 0) return '';
    end = comma;
  }
}

/** Undefined for any other spelling: leading zeros mean octal to some programs. */
function parseIpv4(text: string): number | undefined {
  if (text.length < 7 || text.length > 15) return undefined;
  let address = 0;
  let byte = 0;
  let digits = 0;
  let dots = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === DOT) {
      if (digits === 0 || ++dots > 3) return undefined;
      address = address * 256 + byte;
      byte = 0;
      digits = 0;
    } else {
      if (code < ZERO || code > ZERO + 9 || (digits > 0 && byte === 0)) return undefined;
      byte = byte * 10 + (code - ZERO);
      digits++;
      if (byte > 255) return undefined;
    }
  }
  return dots === 3 && digits > 0 ? address * 256 + byte : undefined;
}

/** The groups of the address that is being read; nothing else runs meanwhile. */
const groups = new Uint16Array(GROUPS);

function parseIpv6(text: string): Network | undefined {
  let count = 0;
  let gapAt = -1;
  let at = 0;
  while (at < text.length && text.charCodeAt(at) !== PERCENT) {
    if (text.charCodeAt(at) === COLON) {
      // Two of them stand for zeros, once; a single one needs a group on both sides.
      if (text.charCodeAt(at + 1) === COLON) {
        if (gapAt >= 0) return undefined;
        gapAt = count;
        at += 2;
        continue;
      }
      if (count === 0 || gapAt === count || at + 1 === text.length) return undefined;
      at++;
    } else if (count > 0 && gapAt !== count) return undefined;
    const end = endOfGroup(text, at);
    if (end === at) return undefined;
    if (text.charCodeAt(end) === DOT) {
      const ipv4 = parseIpv4(text.slice(at));
      if (ipv4 === undefined || count > GROUPS - 2) return undefined;
      groups[count++] = ipv4 >>> 16;
      groups[count++] = ipv4;
      break;
    }
    if (end - at > MAX_GROUP_DIGITS || count === GROUPS) return undefined;
    groups[count++] = Number.parseInt(text.slice(at, end), 16);
    at = end;
  }
  return spread(count, gapAt) ? read() : undefined;
}

/** Behind the last hex digit from there. */
function endOfGroup(text: string, from: number): number {
  let at = from;
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at) | 0x20;
    const isDigit = code >= ZERO && code <= ZERO + 9;
    if (!isDigit && (code < 97 || code > 102)) break;
  }
  return at;
}

/** Puts the zeros of the gap into the groups; false where there are too few groups, or too many for a gap. */
function spread(count: number, gapAt: number): boolean {
  if (gapAt < 0) return count === GROUPS;
  if (count === GROUPS) return false;
  groups.copyWithin(GROUPS - (count - gapAt), gapAt, count);
  groups.fill(0, gapAt, GROUPS - (count - gapAt));
  return true;
}

function read(): Network {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = groups;
  // ::ffff:0:0/96, below which IPv4 addresses stand.
  if ((a | b | c | d | e) === 0 && f === 0xffff) return { high: IPV4_HIGH, low: g * 0x1_0000 + h };
  return { high: a * 0x1_0000 + b, low: c * 0x1_0000 + d };
}
