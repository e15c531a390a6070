// Every suite by its name.

import { backlog } from './backlog.ts';
import { bridge } from './bridge.ts';
import { calls } from './calls.ts';
import { cells } from './cells.ts';
import { claims } from './claims.ts';
import { consoleSuite } from './console.ts';
import { cost } from './cost.ts';
import { holds } from './holds.ts';
import { limits } from './limits.ts';
import { neighbours } from './neighbours.ts';
import { paid } from './paid.ts';
import { processes } from './processes.ts';
import { quorum } from './quorum.ts';
import { rebuild } from './rebuild.ts';
import { retention } from './retention.ts';
import type { Suite } from './suite.ts';
import { webhooks } from './webhooks.ts';
import { whole } from './whole.ts';

/** In the order in which the page of the bench shows them. */
export const SUITES: Record<string, Suite> = {
  claims,
  bridge,
  webhooks,
  calls,
  console: consoleSuite,
  neighbours,
  backlog,
  holds,
  cost,
  paid,
  limits,
  rebuild,
  cells,
  retention,
  quorum,
  whole,
  processes,
};
