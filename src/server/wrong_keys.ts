// How often an address may send a wrong key. Counted for each address by itself: a stranger who guesses slows down nobody else.

import { isIPv6 } from 'node:net';
import type { Clock } from '#core/ports.ts';

const WINDOW_MS = 1_000;
/** More guessers at once than a second brings; beyond that the oldest is forgotten, so that memory stays what it is. */
const MAX_ADDRESSES = 10_000;
/** Whoever has one address of IPv6 has all that share its first half. */
const IPV6_NETWORK_GROUPS = 4;

export class WrongKeys {
  readonly #maxPerSec: number;
  readonly #now: Clock;
  /** When the latest wrong keys of an address came, oldest first; no more of them than are needed to refuse. */
  readonly #times = new Map<string, number[]>();

  constructor(maxPerSec: number, now: Clock) {
    this.#maxPerSec = maxPerSec;
    this.#now = now;
  }

  get size(): number {
    return this.#times.size;
  }

  /** True while the address has to wait: its keys are not even compared then, or it would see which one was right. */
  isBarred(address: string): boolean {
    return this.#recent(networkOf(address)).length >= this.#maxPerSec;
  }

  add(address: string): void {
    const network = networkOf(address);
    const times = [...this.#recent(network), this.#now()];
    // Deleted first, so that the order of the map is that of the latest wrong key.
    this.#times.delete(network);
    this.#times.set(network, times);
    if (this.#times.size <= MAX_ADDRESSES) return;
    const [oldest] = this.#times.keys();
    if (oldest !== undefined) this.#times.delete(oldest);
  }

  #recent(network: string): number[] {
    const since = this.#now() - WINDOW_MS;
    return (this.#times.get(network) ?? []).filter((at) => at > since);
  }
}

/** The address itself, or the network of one of IPv6. An IPv4 address may come in the clothes of IPv6. */
export function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '');
  if (!isIPv6(plain)) return plain;
  const [head = '', tail = ''] = plain.toLowerCase().split('%')[0]?.split('::') ?? [];
  const [before, after] = [head, tail].map((part) => part.split(':').filter(Boolean));
  const zeros = 8 - (before?.length ?? 0) - (after?.length ?? 0);
  const groups = plain.includes('::')
    ? [...(before ?? []), ...Array(zeros).fill('0'), ...(after ?? [])]
    : (before ?? []);
  return groups
    .slice(0, IPV6_NETWORK_GROUPS)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}
