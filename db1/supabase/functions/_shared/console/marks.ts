// What happened while the numbers were taken: the marks of all databases as one list. Pure.

export type MarkKind =
  | 'outage'
  | 'breaker'
  | 'failover'
  | 'restart'
  | 'deploy'
  | 'start'
  | 'alert'
  | 'secret'
  | 'action';

/** As public.read_samples gives it. */
export interface RawMark {
  readonly kind: MarkKind;
  readonly subject: string;
  readonly began_ms: number;
  /** Null: it goes on. */
  readonly ended_ms: number | null;
  /** Of what operators did: who, how often, and to what where it was once. */
  readonly actor?: string;
  readonly times?: number;
  readonly target?: string | null;
  /** What is known of the cause. */
  readonly why?: string | null;
}

export interface Mark {
  readonly kind: MarkKind;
  readonly subject: string;
  /** The database that noted it. */
  readonly source: string;
  readonly began_at: string;
  /** Null: it goes on. */
  readonly ended_at: string | null;
  readonly actor?: string;
  readonly times?: number;
  readonly target?: string;
  /** What is known of the cause. */
  readonly why?: string;
}

export type Span = readonly [fromMs: number, toMs: number];

/** Two databases that noted the same thing differ by a few seconds. */
const SLACK_MS = 10_000;
/** Noted by each database that answers; all else is what that database itself saw. */
const SHARED: ReadonlySet<MarkKind> = new Set(['outage', 'breaker', 'deploy', 'start']);

interface Noted extends RawMark {
  readonly source: string;
}

/** Newest first. What several databases noted of one thing is one mark. */
export function mergeMarks(
  answers: readonly { readonly source: string; readonly marks: readonly RawMark[] }[],
): Mark[] {
  const all = answers
    .flatMap(({ source, marks }) => marks.map((mark): Noted => ({ ...mark, source })))
    .sort((a, b) => a.began_ms - b.began_ms);
  const merged: Noted[] = [];
  for (const mark of all) {
    const index = SHARED.has(mark.kind) ? merged.findLastIndex((other) => isSame(other, mark)) : -1;
    const other = merged[index];
    if (other === undefined) merged.push(mark);
    else merged[index] = { ...other, ended_ms: endOf(other, mark), why: mark.why ?? other.why ?? null };
  }
  return merged.reverse().map(asMark);
}

function isSame(a: Noted, b: Noted): boolean {
  return a.kind === b.kind && a.subject === b.subject && b.began_ms <= (a.ended_ms ?? Infinity) + SLACK_MS;
}

/** A database that was away itself may not have heard of the end. */
function endOf(a: Noted, b: Noted): number | null {
  if (a.source === b.source) return b.ended_ms;
  if (a.ended_ms === null || b.ended_ms === null) return a.ended_ms ?? b.ended_ms;
  return Math.max(a.ended_ms, b.ended_ms);
}

function asMark({ kind, subject, source, began_ms, ended_ms, actor, times, target, why }: Noted): Mark {
  return {
    kind,
    subject,
    source,
    began_at: new Date(began_ms).toISOString(),
    ended_at: ended_ms === null ? null : new Date(ended_ms).toISOString(),
    ...(actor !== undefined && { actor }),
    ...(times !== undefined && { times }),
    ...(target && { target }),
    ...(why && { why }),
  };
}

/** When this database was away. */
export function outagesOf(marks: readonly Mark[], name: string): Span[] {
  return marks
    .filter(({ kind, subject }) => kind === 'outage' && subject === name)
    .map(({ began_at, ended_at }) => [
      Date.parse(began_at),
      ended_at === null ? Infinity : Date.parse(ended_at),
    ]);
}

const because = (why: string | undefined): string => (why === undefined ? '' : `: ${why}`);

const WORDS: Readonly<Record<MarkKind, (mark: Mark) => string>> = {
  outage: ({ subject }) => `${subject} did not answer`,
  breaker: ({ subject, why }) => `${subject} was left alone after failures${because(why)}`,
  failover: ({ source }) => `${source} failed over to another server`,
  restart: ({ source }) => `${source} was started again`,
  deploy: ({ subject }) => `release ${subject} was deployed`,
  start: ({ subject }) => `a server of release ${subject} started`,
  alert: ({ subject }) => subject,
  secret: ({ subject, why }) => `a server missed the secret of ${subject}${because(why)}`,
  action: ({ subject, actor = 'an operator', times = 1, target }) =>
    `${actor}: ${subject.replaceAll('_', ' ')}${times > 1 ? `, ${times} times` : target ? ` of ${target}` : ''}`,
};

/** As a sentence without its time, for pages and the terminal. */
export const markText = (mark: Mark): string => WORDS[mark.kind](mark);
