// How many events of an SQL handler go into one set: as many as are about a second of work. A set is one transaction, so a larger
// one of slow events would hold its locks longer, and in the end outlast the statement timeout.
//
// A set also costs something by itself, most of it the commit, which waits for disks and standbys. That is not the events' work: on
// a busy cell it can take longer than a second, and sets that shrink for it carry less and wait as long. So both parts are
// told apart, by a straight line through what the last sets took.

const SET_MS = 1_000;
/** Of events and commit together: far below the statement timeout of 30 s. */
const LONGEST_SET_MS = 8_000;
/** Small, because nothing is known yet; a fast handler has a hundred after six sets. */
const FIRST_SIZE = 2;
/** What a set counts for when the next one is known: about the last three decide. */
const FADING = 0.7;
/** Sets of nearly one size say nothing about the two parts: this is how far sizes must spread, of their mean squared. */
const LEAST_SPREAD = 0.02;

/** Sums over the last sets, for the line. They begin with one set of nothing that took no time. */
interface Line {
  readonly sets: number;
  readonly events: number;
  readonly ms: number;
  readonly eventsSquared: number;
  readonly eventsTimesMs: number;
}

const NOTHING: Line = { sets: 1, events: 0, ms: 0, eventsSquared: 0, eventsTimesMs: 0 };

/** The size of each lane's next set, at most `most`. What the last set took doubles it at most, and shrinks it as far as needed. */
export type SetSizes = ReturnType<typeof createSetSizes>;

export function createSetSizes(most: number) {
  const lanes = new Map<number, { readonly size: number; readonly line: Line }>();
  const of = (lane: number): number => lanes.get(lane)?.size ?? Math.min(FIRST_SIZE, most);
  const learn = (lane: number, events: number, tookMs: number): void => {
    const line = extended(lanes.get(lane)?.line ?? NOTHING, events, Math.max(1, tookMs));
    const size = Math.max(1, Math.min(fitting(line, events, tookMs), of(lane) * 2, most));
    lanes.set(lane, { size, line });
  };
  return { of, learn };
}

function extended(line: Line, events: number, ms: number): Line {
  return {
    sets: FADING * line.sets + 1,
    events: FADING * line.events + events,
    ms: FADING * line.ms + ms,
    eventsSquared: FADING * line.eventsSquared + events * events,
    eventsTimesMs: FADING * line.eventsTimesMs + events * ms,
  };
}

/** How many events are a second of work, or fill the longest set. */
function fitting(line: Line, lastEvents: number, lastMs: number): number {
  const whole = Math.floor((SET_MS * lastEvents) / Math.max(1, lastMs));
  const spread = line.sets * line.eventsSquared - line.events * line.events;
  // Twice as many are tried, to see what they take: less than twice as long where most is the commit's.
  if (spread < LEAST_SPREAD * line.events * line.events)
    return 2 * lastMs <= LONGEST_SET_MS ? 2 * lastEvents : whole;
  const msPerEvent = Math.max(0, line.sets * line.eventsTimesMs - line.events * line.ms) / spread;
  const msPerSet = (line.ms - msPerEvent * line.events) / line.sets;
  const work = Math.min(SET_MS, LONGEST_SET_MS - msPerSet);
  return Math.max(whole, Math.floor(work / Math.max(msPerEvent, SET_MS / Number.MAX_SAFE_INTEGER)));
}
