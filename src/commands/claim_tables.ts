// What `claims`, `orders`, `refunds` and `issues` show alike.

import type { TimelineEvent } from '#core/console/claims.ts';
import { type AdminClient, ApiError } from '../admin/client.ts';
import { formatTable, toTheSecond } from './table.ts';

interface Kind<Thing> {
  /** Throws for what cannot be an id: then nothing is asked. */
  pathOf(id: string): string;
  describe(thing: Thing): string;
  /** What to say of an id that the server does not know. */
  unknown(id: string): string;
}

/** Prints each thing that the server knows and names the others. Returns 1 where one is not known. */
export async function showEach<Thing>(
  connect: () => AdminClient,
  ids: readonly string[],
  json: boolean,
  { pathOf, describe, unknown }: Kind<Thing>,
): Promise<number> {
  const wanted = ids.map((id) => ({ id, path: pathOf(id) }));
  const api = connect();
  let code = 0;
  for (const { id, path } of wanted) {
    const found = await orUnknown(api.get<Thing>(path));
    if (found !== undefined) console.log(json ? JSON.stringify(found) : `${describe(found)}\n`);
    else {
      console.error(unknown(id));
      code = 1;
    }
  }
  return code;
}

/** Every field of a row but its id, which is in the head. */
export function factsTable<Row extends object>(what: string, row: Row, id: keyof Row & string): string {
  const facts = Object.entries(row).filter(([name]) => name !== id);
  return formatTable(
    [what, String(row[id])],
    facts.map(([name, value]) => [name, value === null ? '-' : textOf(value)]),
  );
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** Undefined where the server does not know it. */
async function orUnknown<Answer>(asked: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

export function timelineTable(timeline: readonly TimelineEvent[]): string {
  const known = (detail: TimelineEvent['detail']) =>
    Object.entries(detail)
      .filter(([, value]) => value !== null && value !== undefined)
      .map(([name, value]) => `${name}=${textOf(value)}`)
      .join(' ');
  return formatTable(
    ['AT', 'WHAT', 'DETAIL'],
    timeline.map(({ at, what, detail }) => [at === null ? '?' : toTheSecond(at), what, known(detail)]),
  );
}
