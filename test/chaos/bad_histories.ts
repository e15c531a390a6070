// Everything that a checker must reject.

import { BAD_CLAIMS } from './bad_claims.ts';
import { BAD_EVENTS } from './bad_events.ts';
import type { BadHistory } from './bad_history.ts';
import { BAD_NEIGHBOURS } from './bad_neighbours.ts';
import { BAD_ORDERS } from './bad_orders.ts';

export const BAD_HISTORIES: readonly BadHistory[] = [
  ...BAD_CLAIMS,
  ...BAD_EVENTS,
  ...BAD_NEIGHBOURS,
  ...BAD_ORDERS,
];
