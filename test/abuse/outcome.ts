// What a run of the table came to, for the report on reliability: with SLUICE_ABUSE_KEEP=1 it is kept as
// chaos/summaries/abuse.node.json and abuse.deno.json.

import { readSettings } from '../../bench/durability.ts';
import { beginRun, keepSummary, writeRaw } from '../../bench/summaries.ts';
import { withClient } from '../../src/migrate/sql.ts';
import type { Runtime } from './place.ts';

export class Tally {
  readonly #runtime: Runtime;
  readonly #run: ReturnType<typeof beginRun> | undefined;
  #cells = 0;
  #failed = 0;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    const command = `npm test -- test/abuse/${runtime}.test.ts`;
    if (process.env.SLUICE_ABUSE_KEEP) this.#run = beginRun(`abuse.${runtime}`, command);
  }

  get cells(): number {
    return this.#cells;
  }

  add(cells: number, failed: number): void {
    this.#cells += cells;
    this.#failed += failed;
  }

  async keep(databaseUrl: string): Promise<void> {
    if (this.#run === undefined) return;
    const result = { runtime: this.#runtime, rows: this.#cells, passed: this.#cells - this.#failed };
    const raw = this.#run.end(await withClient(databaseUrl, readSettings), result);
    writeRaw('abuse', raw, this.#runtime);
    keepSummary('chaos', raw, result);
  }
}
