// What clients were told, and when: acknowledgements by their own keys, and the statuses of all answers.

export type Told = readonly [key: string, what: string];

export class Tally {
  readonly told: Told[] = [];
  /** How many answers had which status; 0 is no answer. */
  readonly statuses = new Map<number, number>();
  /** When the last acknowledgement came, by what was acknowledged. */
  readonly lastMs = new Map<string, number>();

  /** `told` is left out where the answer acknowledges nothing. */
  note(kind: string, status: number | undefined, told?: Told): void {
    this.statuses.set(status ?? 0, (this.statuses.get(status ?? 0) ?? 0) + 1);
    if (told === undefined) return;
    this.told.push(told);
    this.lastMs.set(kind, performance.now());
  }

  /** Statuses that clients may not see, whatever breaks: an error that does not ask for a retry. */
  get wrong(): number[] {
    return [...this.statuses.keys()].filter((status) => status >= 500 && status !== 503);
  }
}
