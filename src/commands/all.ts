import type { Command } from './command.ts';

type Load = () => Promise<Command>;

/** In the order of the overview. Loaded when asked for: `sluice dlq` need not wait for a server it does not start. */
export const COMMANDS: Readonly<Record<string, Load>> = {
  dev: async () => (await import('./dev.ts')).dev,
  serve: async () => (await import('./serve.ts')).serve,
  work: async () => (await import('./work.ts')).work,
  migrate: async () => (await import('./migrate.ts')).migrate,
  status: async () => (await import('./status.ts')).status,
  doctor: async () => (await import('./doctor.ts')).doctor,
  pools: async () => (await import('./pools.ts')).pools,
  claims: async () => (await import('./claims.ts')).claims,
  dlq: async () => (await import('./dlq.ts')).dlq,
  webhooks: async () => (await import('./webhooks.ts')).webhooks,
  calls: async () => (await import('./calls.ts')).calls,
  reconcile: async () => (await import('./reconcile.ts')).reconcile,
  demo: async () => (await import('./demo.ts')).demo,
  bench: async () => (await import('./bench.ts')).bench,
  reset: async () => (await import('./reset.ts')).reset,
  completion: async () => (await import('./completion.ts')).completion,
};

export async function loadAll(): Promise<Record<string, Command>> {
  const entries = Object.entries(COMMANDS).map(async ([name, load]) => [name, await load()] as const);
  return Object.fromEntries(await Promise.all(entries));
}
