import type { Command } from './grammar.ts';

type Listed = readonly [summary: string, load: () => Promise<{ readonly command: Command }>];

/**
 * In the order of the overview, with the summary there. A command is loaded when it is asked for: `sluice dlq` does not
 * wait for the server's code.
 */
export const COMMANDS: Readonly<Record<string, Listed>> = {
  dev: ['start everything on this machine (npm start)', () => import('./dev.ts')],
  serve: ['start the HTTP server against DB1_URL and DB2_URL', () => import('./serve.ts')],
  work: ['carry claims to the ledger, process webhook events', () => import('./work.ts')],
  migrate: ['prepare two databases of your own', () => import('./migrate.ts')],
  status: ['show the numbers of a running server', () => import('./status.ts')],
  doctor: ['check everything, and say what to do', () => import('./doctor.ts')],
  operators: ['add, list and revoke operators', () => import('./operators.ts')],
  hosts: ['allow, list and remove private hosts of hooks', () => import('./hosts.ts')],
  users: ['export what is known about a user, or erase the user', () => import('./users.ts')],
  retention: ['show and set how long data is kept', () => import('./retention.ts')],
  pools: ['list, create and change pools', () => import('./pools.ts')],
  cells: ['list, add and drain cells: several intakes as one', () => import('./cells.ts')],
  claims: ['find, show, release and void claims', () => import('./claims.ts')],
  orders: ['find and show orders of paid pools', () => import('./orders.ts')],
  refunds: ['list, show, send and skip refunds that Sluice owes', () => import('./refunds.ts')],
  issues: ['what fails, each kind once: list, show, replay, resolve', () => import('./issues.ts')],
  dlq: ['list, show, replay and discard dead letters', () => import('./dlq.ts')],
  webhooks: ['endpoints, stored events, replay, signatures', () => import('./webhooks.ts')],
  calls: ['call events: sites, recorded calls, a sample to send', () => import('./calls.ts')],
  audit: ['check that no row of the audit logs was changed', () => import('./audit.ts')],
  reconcile: ['compare the intake with the ledger', () => import('./reconcile.ts')],
  export: ['write both databases into one file', () => import('./export.ts')],
  import: ['put an exported file into two new databases', () => import('./import.ts')],
  demo: ['show a burst: 5,000 buyers for 1,000 seats', () => import('./demo.ts')],
  bench: ['measure it (in a clone of the repository)', () => import('./bench.ts')],
  reset: ['remove the data of the embedded stack', () => import('./reset.ts')],
  completion: ['print a completion script for a shell', () => import('./completion.ts')],
};

export async function loadAll(): Promise<Record<string, Command>> {
  const entries = Object.entries(COMMANDS).map(
    async ([name, [, load]]) => [name, (await load()).command] as const,
  );
  return Object.fromEntries(await Promise.all(entries));
}
