// What `claims`, `orders` and `refunds` show alike.

import type { TimelineEvent } from '#core/console/claims.ts';
import { ApiError } from '../admin/client.ts';
import { formatTable, toTheSecond } from './table.ts';

/** Undefined where the server does not know it. */
export async function orUnknown<Answer>(asked: Promise<Answer>): Promise<Answer | undefined> {
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
      .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
      .join(' ');
  return formatTable(
    ['AT', 'WHAT', 'DETAIL'],
    timeline.map(({ at, what, detail }) => [at === null ? '?' : toTheSecond(at), what, known(detail)]),
  );
}
