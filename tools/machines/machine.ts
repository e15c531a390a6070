// A state machine as data: what the docs draw and what real histories are held against.

export type Transition = {
  /** Null is a row that is not there yet. */
  from: string | null;
  to: string;
  /** What happens, in the words of the docs. */
  event: string;
  /** The SQL functions that take this step; only those that callers outside the database use. Without their schemas. */
  by: readonly string[];
};

export type Machine = {
  /** The database, the table and the column whose values are the states. */
  side: 'db1' | 'db2';
  table: string;
  column: string;
  /** Where a row goes from a state to the same state and something happens all the same, in SQL over `old` and `new`. */
  alsoWhen?: string;
  /** The page with the diagram. */
  page: string;
  /** How the marks in the page call it; by its table where left out. */
  mark?: string;
  transitions: readonly Transition[];
};

/** A step that a row has really taken; `by` is empty where a plain statement took it. */
export type Step = { from: string | null; to: string; by: string };

export const told = ({ from, to, by }: Step): string =>
  `${from ?? '(new)'} → ${to} by ${by || 'a plain statement'}`;

/** Every step that the list knows. */
export function stepsOf({ transitions }: Machine): Step[] {
  const all = transitions.flatMap(({ from, to, by }) => by.map((name) => ({ from, to, by: name })));
  return all.filter((step, at) => all.findIndex((other) => told(other) === told(step)) === at);
}

/** What was taken and is not on the list, and what is on the list and was never taken. */
export function compare(machine: Machine, taken: readonly Step[]): { unknown: string[]; untaken: string[] } {
  const known = new Set(stepsOf(machine).map(told));
  const seen = new Set(taken.map(told));
  return {
    unknown: [...seen].filter((step) => !known.has(step)).sort(),
    untaken: [...known].filter((step) => !seen.has(step)).sort(),
  };
}
