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
const IPV4_PORT = /^([0-9.]+):[0-9]{1,5}$/;
const BRACKETED = /^\[([^[\]]+)\](?::[0-9]{1,5})?$/;
const ZONE = /%.*$/;
const GROUP = /^[0-9a-fA-F]{1,4}$/;
const GROUPS = 8;
/** The groups of ::ffff:0:0/96, below which IPv4 addresses stand. */
const MAPPED_PREFIX = [0, 0, 0, 0, 0, 0xffff];

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

/** With or without a port, in brackets or bare; undefined for what is not an address. */
export function parseAddress(text: string): Network | undefined {
  // Nearly every address: as a socket that listens for both families tells it, or bare.
  const ipv4 = parseIpv4(text.startsWith(MAPPED) ? text.slice(MAPPED.length) : text.replace(IPV4_PORT, '$1'));
  if (ipv4 !== undefined) return { high: IPV4_HIGH, low: ipv4 };
  return parseIpv6((BRACKETED.exec(text)?.[1] ?? text).replace(ZONE, ''));
}

export function textOf({ high, low }: Network): string {
  if (high === IPV4_HIGH) return [low >>> 24, (low >>> 16) & 255, (low >>> 8) & 255, low & 255].join('.');
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

/** Undefined for any other spelling: leading zeros mean octal to some programs. Read by hand, in 60 ns: every claim asks. */
function parseIpv4(text: string): number | undefined {
  if (text.length < 7 || text.length > 15) return undefined;
  let address = 0;
  let byte = 0;
  let digits = 0;
  let dots = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 46) {
      if (digits === 0 || ++dots > 3) return undefined;
      address = address * 256 + byte;
      byte = 0;
      digits = 0;
    } else {
      if (code < 48 || code > 57 || (digits > 0 && byte === 0)) return undefined;
      byte = byte * 10 + (code - 48);
      digits++;
      if (byte > 255) return undefined;
    }
  }
  return dots === 3 && digits > 0 ? address * 256 + byte : undefined;
}

function parseIpv6(text: string): Network | undefined {
  const [head = '', tail, ...more] = text.split('::');
  if (more.length > 0) return undefined;
  const before = parseGroups(head);
  const after = tail === undefined ? [] : parseGroups(tail);
  if (before === undefined || after === undefined) return undefined;
  const zeros = GROUPS - before.length - after.length;
  if (tail === undefined ? zeros !== 0 : zeros < 1) return undefined;
  const groups = [...before, ...new Array<number>(zeros).fill(0), ...after];
  const [a = 0, b = 0, c = 0, d = 0] = groups;
  if (MAPPED_PREFIX.every((group, at) => groups[at] === group))
    return { high: IPV4_HIGH, low: join(groups[6] ?? 0, groups[7] ?? 0) };
  return { high: join(a, b), low: join(c, d) };
}

/** Groups of 16 bits; the last may be an IPv4 address, which is two of them. */
function parseGroups(text: string): number[] | undefined {
  if (text === '') return [];
  const groups: number[] = [];
  const parts = text.split(':');
  for (const [at, part] of parts.entries()) {
    if (GROUP.test(part)) {
      groups.push(Number.parseInt(part, 16));
      continue;
    }
    const ipv4 = at === parts.length - 1 ? parseIpv4(part) : undefined;
    if (ipv4 === undefined) return undefined;
    groups.push(ipv4 >>> 16, ipv4 & 0xffff);
  }
  return groups;
}

function join(upper: number, lower: number): number {
  return upper * 0x1_0000 + lower;
}
