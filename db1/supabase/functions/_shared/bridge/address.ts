// Which addresses a hook may not have: everything that is not a public unicast address. Checked when a URL is stored
// and again, after DNS, when it is called.

type Block = readonly [address: string, prefixBits: number];

// The special-purpose registries of IANA (RFC 6890 and its successors), cloud metadata among them.
const REFUSED_IPV4: readonly Block[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // Public on paper, the host's own agent on Azure.
  ['168.63.129.16', 32],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
];

function ipv4Bits(text: string): number | undefined {
  const parts = text.split('.');
  if (parts.length !== 4) return undefined;
  let bits = 0;
  for (const part of parts) {
    if (!/^(0|[1-9]\d{0,2})$/.test(part) || Number(part) > 255) return undefined;
    bits = bits * 256 + Number(part);
  }
  return bits;
}

function isRefusedIpv4(bits: number): boolean {
  return REFUSED_IPV4.some(([address, prefixBits]) => {
    const size = 2 ** (32 - prefixBits);
    return Math.floor(bits / size) === Math.floor((ipv4Bits(address) ?? 0) / size);
  });
}

/** The eight groups of an IPv6 address, or undefined where it is none. */
function ipv6Groups(text: string): number[] | undefined {
  let plain = text.replace(/%.*$/, '');
  const dotted = /:([\d.]+)$/.exec(plain)?.[1];
  if (dotted?.includes('.')) {
    const bits = ipv4Bits(dotted);
    if (bits === undefined) return undefined;
    const tail = `${Math.floor(bits / 65_536).toString(16)}:${(bits % 65_536).toString(16)}`;
    plain = plain.slice(0, -dotted.length) + tail;
  }
  const halves = plain.split('::');
  if (halves.length > 2) return undefined;
  const [head = [], tail = []] = halves.map((half) => (half === '' ? [] : half.split(':')));
  const missing = 8 - head.length - tail.length;
  if (halves.length === 1 ? missing !== 0 : missing < 1) return undefined;
  const groups = [...head, ...Array<string>(halves.length === 1 ? 0 : missing).fill('0'), ...tail];
  if (!groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return undefined;
  return groups.map((group) => Number.parseInt(group, 16));
}

function isRefusedIpv6(groups: readonly number[]): boolean {
  const [g0 = 0, g1 = 0] = groups;
  // Only 2000::/3 is global unicast: neither what is local nor what carries an IPv4 address (mapped, compatible, NAT64) is
  // in it. Of it, 6to4, which carries one too, documentation and Teredo are not for us.
  if (g0 >> 13 !== 1) return true;
  return g0 === 0x2002 || (g0 === 0x2001 && (g1 === 0x0db8 || g1 < 0x0200)) || g0 === 0x3fff;
}

/** True for every address that a hook may not have, and for text that is not an address. */
export function isRefusedAddress(address: string): boolean {
  const bits = ipv4Bits(address);
  if (bits !== undefined) return isRefusedIpv4(bits);
  const groups = ipv6Groups(address);
  return groups === undefined || isRefusedIpv6(groups);
}

// Names that no public DNS answers (RFC 6761, 6762 with its appendix G, 8375; .internal by ICANN; Kubernetes' .svc).
const LOCAL_ENDINGS = /\.(localhost|local|internal|intranet|private|corp|home|lan|home\.arpa|svc)$/;

/** Why a URL cannot be a hook, or undefined. Hosts on the owner's list are allowed whatever their address. */
export function refusalOfUrl(text: string, allowedHosts: ReadonlySet<string>): string | undefined {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return 'not a URL';
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'not http or https';
  if (url.username !== '' || url.password !== '') return 'has credentials in it';
  if (allowedHosts.has(url.host) || allowedHosts.has(url.hostname)) return undefined;
  // A dot at the end makes a name absolute, and changes nothing else about it.
  const host = url.hostname.replace(/^\[|\]$|\.+$/g, '');
  const looksLikeAddress = host.includes(':') || /^[\d.]+$/.test(host);
  if (looksLikeAddress && isRefusedAddress(host)) return 'a private or special address';
  // A name of one label is found in the searching machine's own domain, if anywhere.
  const isLocal = !looksLikeAddress && (!host.includes('.') || LOCAL_ENDINGS.test(host));
  return isLocal ? 'a local name' : undefined;
}
