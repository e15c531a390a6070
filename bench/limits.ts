// The limits suite: what it costs to count a claim against its address, and what a million addresses take.

import { NO_METRICS } from '#core/ports.ts';
import { createLog } from '../src/log.ts';
import { AddressLimits, DEFAULT_LIMITS } from '../src/server/address_limits.ts';
import { type Column, makeTable, whole } from './rows.ts';
import { median } from './stats.ts';
import type { Suite } from './suite.ts';

const FULL = { addresses: 1_000_000, rounds: 7 };
/** Shows that it runs. */
const QUICK = { addresses: 10_000, rounds: 1 };
const MAX_BYTES = 64 * 1024 * 1024;
const NS_PER_US = 1_000;
const BYTE = 256;
const HEX = 16;
/** No round is refused. */
const MANY = 1_000_000_000;

type LimitRow = {
  name: string;
  addresses: number;
  bytes: number;
  ns_per_admit: number;
};

const COLUMNS: Column<LimitRow>[] = [
  { heading: 'row', isText: true, text: ({ name }) => name },
  { heading: 'addresses', text: ({ addresses }) => whole(addresses) },
  { heading: 'bytes', text: ({ bytes }) => whole(bytes) },
  { heading: 'CPU ns per claim', text: ({ ns_per_admit }) => whole(ns_per_admit) },
];

/** As a socket that listens for both families tells them. */
function peers(number: number, spell: (a: number, b: number, c: number) => string): string[] {
  return Array.from({ length: number }, (_, index) =>
    spell(Math.floor(index / BYTE / BYTE) % BYTE, Math.floor(index / BYTE) % BYTE, index % BYTE),
  );
}

function measure(name: string, addresses: readonly string[], rounds: number): LimitRow {
  const ports = { proxy: { trustedProxies: 0 }, metrics: NO_METRICS, log: createLog('silent') };
  const limits = new AddressLimits({ claims: { ...DEFAULT_LIMITS.claims, burst: MANY } }, ports);
  const headers = {};
  const times = Array.from({ length: rounds }, () => {
    const start = process.cpuUsage();
    for (const peer of addresses) limits.admitClaim({ peer, headers });
    const { user, system } = process.cpuUsage(start);
    return ((user + system) * NS_PER_US) / addresses.length;
  });
  return {
    name,
    addresses: addresses.length,
    bytes: limits.bytes,
    ns_per_admit: median(times),
  };
}

export const limits: Suite = {
  summary: 'the limits for each address: bytes for a million of them, nanoseconds for each claim',
  async run({ quick }) {
    const { addresses, rounds } = quick ? QUICK : FULL;
    const rows = [
      measure(
        'ipv4',
        peers(addresses, (a, b, c) => `::ffff:203.${a}.${b}.${c}`),
        rounds,
      ),
      measure(
        'ipv6',
        peers(addresses, (a, b, c) => `2001:db8:${a.toString(HEX)}:${(b * BYTE + c).toString(HEX)}::1`),
        rounds,
      ),
      measure(
        'one address',
        peers(addresses, () => '::ffff:203.0.113.7'),
        rounds,
      ),
    ];
    const largest = Math.max(...rows.map(({ bytes }) => bytes));
    return {
      settings: { database: 'none' },
      rows,
      demands: [{ what: '64 MB in the bytes of all limits', atLeast: 1, value: MAX_BYTES / largest }],
    };
  },
  table: (rows) => makeTable(COLUMNS, rows as readonly LimitRow[]),
};
