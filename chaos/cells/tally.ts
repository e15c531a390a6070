// What clients were told, and when: acknowledgements by their own keys, and the statuses of all answers.

export type Kind = 'claim' | 'event' | 'call';

export interface Told {
  readonly kind: Kind;
  /** The request, event or signature that the client knows it by. */
  readonly key: string;
  /** The claim that a request was told; empty for the others. */
  readonly claimId: string;
  readonly atMs: number;
}

export class Tally {
  readonly told: Told[] = [];
  /** How many answers had which status; 0 stands for no answer. */
  readonly statuses = new Map<string, number>();

  /** `told` is left out where the answer acknowledges nothing. */
  note(kind: Kind, status: number, told?: Pick<Told, 'key' | 'claimId'>): void {
    const name = `${kind} ${status}`;
    this.statuses.set(name, (this.statuses.get(name) ?? 0) + 1);
    if (told !== undefined) this.told.push({ kind, ...told, atMs: performance.now() });
  }

  /** Errors that do not ask for a retry: no fault excuses one. */
  get wrong(): string[] {
    return [...this.statuses.keys()].filter((name) => !/ (0|2\d\d|429|503)$/.test(name));
  }

  countSince(kind: Kind, sinceMs: number): number {
    let count = 0;
    for (let at = this.told.length - 1; at >= 0 && (this.told[at]?.atMs ?? 0) >= sinceMs; at--)
      if (this.told[at]?.kind === kind) count++;
    return count;
  }

  /** The longest time without an acknowledgement of this kind, from one moment to another. */
  gapMs(kind: Kind, fromMs: number, toMs: number): number {
    const times = this.told
      .filter((one) => one.kind === kind && one.atMs >= fromMs && one.atMs <= toMs)
      .map((one) => one.atMs);
    const edges = [fromMs, ...times, toMs];
    return Math.max(...edges.slice(1).map((at, index) => at - (edges[index] ?? at)));
  }
}
