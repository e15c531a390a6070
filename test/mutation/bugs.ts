// Bugs that were fixed here, as they would come back: one place of the product, and the test that has to notice. Those that the
// controls of test/model and chaos plant are not repeated here; docs/bugs.md lists all.

import { CLAIMS } from './planted/claims.ts';
import { EDGE } from './planted/edge.ts';
import { EVENTS } from './planted/events.ts';
import { FLEET } from './planted/fleet.ts';
import { OPERATORS } from './planted/operators.ts';
import { ORDERS } from './planted/orders.ts';
import { RUNNING } from './planted/running.ts';
import { WATCHING } from './planted/watching.ts';

export interface Bug {
  readonly name: string;
  /** What the product did, for people. */
  readonly was: string;
  readonly file: string;
  /** Stands in the file once. */
  readonly from: string;
  readonly to: string;
  /** Passes without the bug. */
  readonly test: string;
  /** A part of the name of the test in it that fails with the bug. */
  readonly finds: string;
}

export const BUGS: readonly Bug[] = [
  ...CLAIMS,
  ...EVENTS,
  ...ORDERS,
  ...OPERATORS,
  ...RUNNING,
  ...WATCHING,
  ...FLEET,
  ...EDGE,
];
