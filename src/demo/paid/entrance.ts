// The entrance at the end of a paid demo: one ticket is checked twice, and one that was refunded once.

import type { AdminClient } from '../../admin/client.ts';

export interface Entrance {
  /** What the scanner was told: of a ticket the first time, the second time, and of the ticket that was refunded. */
  readonly first: string;
  readonly second: string;
  /** Null where no buyer of the plan was refunded after the ticket. */
  readonly refunded: string | null;
}

export async function tryEntrance(
  admin: Pick<AdminClient, 'post'>,
  ticketUrl: string,
  refundedUrl: string | undefined,
): Promise<Entrance> {
  const check = async (token: string): Promise<string> =>
    (await admin.post<{ outcome: string }>('/v1/tickets/check', { token })).outcome;
  return {
    first: await check(ticketUrl),
    second: await check(ticketUrl),
    refunded: refundedUrl === undefined ? null : await check(refundedUrl),
  };
}

/** What is not as promised; none where all is. Pure. */
export function entranceProblems(entrance: Entrance | null): string[] {
  if (entrance === null) return [];
  const { first, second, refunded } = entrance;
  return [
    ...(first === 'valid' ? [] : [`the entrance says ${first} of a ticket that is paid`]),
    ...(second === 'used' ? [] : [`the entrance says ${second} of a ticket that was let in before`]),
    ...(refunded === null || refunded === 'voided'
      ? []
      : [`the entrance says ${refunded} of a ticket that was refunded`]),
  ];
}
