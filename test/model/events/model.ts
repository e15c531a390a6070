// Provider events as one person would explain them: each is recorded once, worked on under a lease, and takes effect once.

import { isDeepStrictEqual } from 'node:util';
import { type Notice, summaryOf } from './payments.ts';

export type Status = 'pending' | 'processing' | 'success' | 'skipped' | 'failed' | 'dead_letter';
/** What the shop's handler does with every event: takes the effect, or raises. */
export type Mood = 'well' | 'failed' | 'dead_letter' | 'later' | 'outage' | 'again';
export type Outcome = Exclude<Mood, 'well'> | 'slow' | 'success' | 'skipped' | 'pending';

/** Notice: a payment's; without one it is the shop's, whose effect is a row. */
export type Template = { name: string; eventId: string; payment: string | null; notice: Notice | null };

export type Event = Template & {
  id: string;
  /** The body it was recorded with. */
  isForged: boolean;
  status: Status;
  attempts: number;
  takeovers: number;
  /** Which lease it is under: counted up with each. */
  token: number | null;
  isLeaseOver: boolean;
  /** When a worker may take it: in the order of these, then of arrival. Null: not yet, or never again. */
  dueSince: number | null;
  arrival: number;
  isSkippedByOperator: boolean;
  effects: number;
  /** Its last try left an error: such events come last in a set. */
  hadTrouble: boolean;
};

export type Lease = { worker: string; event: Event; token: number; text: string };

export const MAX_ATTEMPTS = 3;
const TAKEOVERS_MAX = 10;
/** Where the first of a set fail, so many of them, the handler is at fault: the others are not tried. */
const FAILURES_IN_A_ROW = 3;

export class Model {
  readonly events: Event[] = [];
  leases: Lease[] = [];
  /** What the session of the workers without tokens remembers. */
  readonly remembered = new Map<Event, number>();
  readonly alarms = new Set<string>();
  readonly audit: string[] = [];
  mood: Mood = 'well';
  #clock = 0;
  #tokens = 0;

  tick = (): number => ++this.#clock;

  find(template: Template): Event | undefined {
    return this.events.find(({ eventId }) => eventId === template.eventId);
  }

  record(template: Template & { isForged: boolean }, id: string, dueSince: number, arrival: number): Event {
    const event: Event = {
      ...template,
      id,
      status: 'pending',
      attempts: 0,
      takeovers: 0,
      token: null,
      isLeaseOver: false,
      dueSince,
      arrival,
      isSkippedByOperator: false,
      effects: 0,
      hadTrouble: false,
    };
    this.events.push(event);
    return event;
  }

  /** Takes what must be given: of each lane the longest due, without suspects, of which a worker may have died. */
  take(limit: number): Event[] {
    const sound = this.#due().filter((event) => !isSuspect(event));
    const lanes = [sound.filter(isOfShop), sound.filter((event) => !isOfShop(event))];
    const taken = lanes.flatMap((lane) => lane.slice(0, limit));
    return taken.sort((one, other) => one.arrival - other.arrival).map((event) => this.#lease(event));
  }

  /** One suspect at a time. */
  takeSuspect(): Event[] {
    return this.#takeFirst(this.#due().filter(isSuspect));
  }

  /** For workers without tokens: the longest due of all, counted at once. */
  claimNext(): Event | undefined {
    const [event] = this.#takeFirst(this.#due());
    if (event?.takeovers === 0) event.attempts++;
    return event;
  }

  #due(): Event[] {
    return this.events
      .filter(({ dueSince }) => dueSince !== null)
      .sort((one, other) => (one.dueSince ?? 0) - (other.dueSince ?? 0) || one.arrival - other.arrival);
  }

  /** The first one that is not lost for the last time; those are given up on the way to it. */
  #takeFirst(due: readonly Event[]): Event[] {
    for (const event of due) {
      const isLost = event.status === 'processing' && event.takeovers + 1 >= TAKEOVERS_MAX;
      if (!isLost) return [this.#lease(event)];
      this.mark(event, 'dead_letter');
    }
    return [];
  }

  #lease(event: Event): Event {
    if (event.status === 'processing') event.takeovers++;
    const token = ++this.#tokens;
    return Object.assign(event, { status: 'processing', token, isLeaseOver: false, dueSince: null });
  }

  holds({ event, token }: Lease): boolean {
    return event.status === 'processing' && event.token === token;
  }

  /** What the handlers make of these events, and what that changes. */
  handle(events: readonly Event[]): void {
    const byArrival = events.toSorted((one, other) => one.arrival - other.arrival);
    const payments = byArrival.filter(({ notice }) => notice !== null);
    const outcomes = this.#pay(payments);
    const shop = byArrival.filter(({ notice }) => notice === null);
    const soundFirst = shop.toSorted((one, other) => Number(one.hadTrouble) - Number(other.hadTrouble));
    const untried = this.mood === 'failed' ? soundFirst.splice(FAILURES_IN_A_ROW) : [];
    for (const event of soundFirst) outcomes.push([event, this.mood === 'well' ? 'success' : this.mood]);
    for (const [event, outcome] of outcomes) {
      // Also a notice that changes nothing has been taken into account.
      if (outcome === 'success' || outcome === 'skipped') event.effects++;
      this.mark(event, outcome);
    }
    for (const event of untried) {
      this.mark(event, 'again');
      event.hadTrouble = false;
    }
  }

  takenOf(payment: string | null): Notice[] {
    return this.events.flatMap(({ notice, payment: own, effects }) =>
      notice !== null && own === payment && effects > 0 ? [notice] : [],
    );
  }

  #pay(order: readonly Event[]): [Event, Outcome][] {
    const taken = new Map<string | null, Notice[]>();
    return order.flatMap((event): [Event, Outcome][] => {
      const { notice, payment } = event;
      if (notice === null) return [];
      const known = taken.get(payment) ?? this.takenOf(payment);
      taken.set(payment, [...known, notice]);
      return [[event, isNews(known, notice) ? 'success' : 'skipped']];
    });
  }

  /** `counted`: attempts that the take has counted already. */
  mark(event: Event, outcome: Outcome, counted = 0): void {
    const isAttempt = !['again', 'outage', 'later', 'pending'].includes(outcome);
    event.attempts = Math.max(0, event.attempts - counted) + Number(isAttempt);
    const isLast = ['failed', 'slow'].includes(outcome) && event.attempts >= MAX_ATTEMPTS;
    const wait = ['slow', 'again', 'outage', 'later'].includes(outcome) ? 'failed' : (outcome as Status);
    event.status = isLast ? 'dead_letter' : wait;
    if (!['success', 'skipped', 'dead_letter'].includes(event.status))
      event.takeovers = Number(outcome === 'slow');
    event.hadTrouble = outcome !== 'success' && outcome !== 'pending';
    event.token = null;
    event.isLeaseOver = false;
    event.dueSince = outcome === 'pending' ? this.tick() : null;
  }

  hasEnded = ({ status }: Event): boolean => ['success', 'skipped', 'dead_letter'].includes(status);

  replayAnswer({ status, isSkippedByOperator }: Event): string {
    if (status === 'pending' || status === 'processing') return 'in_flight';
    const canGoRound = status === 'failed' || status === 'dead_letter' || isSkippedByOperator;
    return canGoRound ? 'replayed' : 'already_processed';
  }

  skipAnswer({ status, isLeaseOver }: Event): string {
    if (status === 'success') return 'already_processed';
    if (status === 'skipped') return 'already_skipped';
    return status === 'processing' && !isLeaseOver ? 'in_flight' : 'skipped';
  }
}

const isSuspect = ({ status, takeovers }: Event): boolean => status === 'processing' || takeovers > 0;
const isOfShop = ({ notice }: Event): boolean => notice === null;

function isNews(known: Notice[], notice: Notice): boolean {
  return !isDeepStrictEqual(summaryOf(known), summaryOf([...known, notice]));
}
