// The requests of one key (a pool, an endpoint, a site) that wait to be sent, in the order in which they came.

export interface Waiting<Request, Answer> {
  readonly request: Request;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
  readonly weight: number;
  readonly queue: RequestQueue<Request, Answer>;
  /** When it first met an obstacle. */
  stuckSinceMs: number | undefined;
  /** It met an obstacle in a statement of its own: it is tried alone from then on and spoils no other. */
  isAlone: boolean;
}

/** What waits in all queues together. */
export interface Totals {
  count: number;
  weight: number;
}

export class RequestQueue<Request, Answer> {
  readonly key: string;
  /** Among the queues that the common lane takes from in turn. */
  isInLine = false;
  /** Its requests go by themselves: side_lane.ts. */
  isAside = false;
  /** It stays aside until then at least. */
  asideUntilMs = 0;
  /** Set while the side lane has nothing to send for it. */
  wake: (() => void) | undefined;
  readonly #totals: Totals;
  #members: Waiting<Request, Answer>[] = [];
  #weight = 0;

  constructor(key: string, totals: Totals) {
    this.key = key;
    this.#totals = totals;
  }

  get length(): number {
    return this.#members.length;
  }

  get weight(): number {
    return this.#weight;
  }

  push(member: Waiting<Request, Answer>): void {
    this.#members.push(member);
    this.#account(1, member.weight);
  }

  /** They came first, so they go first. */
  putFirst(members: readonly Waiting<Request, Answer>[]): void {
    this.#members = members.concat(this.#members);
    for (const { weight } of members) this.#account(1, weight);
  }

  putLast(members: readonly Waiting<Request, Answer>[]): void {
    for (const member of members) this.push(member);
  }

  /** Takes as many as fit; `atLeast` of them even where they are too heavy. */
  take(most: number, maxWeight: number, atLeast: 0 | 1): Waiting<Request, Answer>[] {
    const size = this.#size(Math.min(most, this.#members.length), maxWeight);
    const taken = this.#members.splice(0, Math.max(size, atLeast));
    let weight = 0;
    for (const member of taken) weight += member.weight;
    this.#account(-taken.length, -weight);
    return taken;
  }

  /** The same for the side lane: a request that goes alone is taken alone. */
  takeAside(most: number, maxWeight: number): Waiting<Request, Answer>[] {
    const firstAlone = this.#members.findIndex((member) => member.isAlone);
    return this.take(firstAlone === -1 ? most : Math.min(most, Math.max(firstAlone, 1)), maxWeight, 1);
  }

  #size(most: number, maxWeight: number): number {
    if (this.#weight <= maxWeight) return most;
    let weight = 0;
    for (let size = 0; size < most; size++) {
      weight += (this.#members[size] as Waiting<Request, Answer>).weight;
      if (weight > maxWeight) return size;
    }
    return most;
  }

  #account(count: number, weight: number): void {
    this.#weight += weight;
    this.#totals.count += count;
    this.#totals.weight += weight;
  }
}

/** The members of each queue, in their order. */
export function byQueue<Request, Answer>(
  members: readonly Waiting<Request, Answer>[],
): Map<RequestQueue<Request, Answer>, Waiting<Request, Answer>[]> {
  const parts = new Map<RequestQueue<Request, Answer>, Waiting<Request, Answer>[]>();
  for (const member of members) {
    const part = parts.get(member.queue);
    if (part === undefined) parts.set(member.queue, [member]);
    else part.push(member);
  }
  return parts;
}
