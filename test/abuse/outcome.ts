// What a run of the table came to, for the report on reliability: SLUICE_ABUSE_JSON=abuse.json makes abuse.node.json and
// abuse.deno.json.

import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Runtime } from './place.ts';

export class Tally {
  readonly #runtime: Runtime;
  #cells = 0;
  #failed = 0;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  get cells(): number {
    return this.#cells;
  }

  add(cells: number, failed: number): void {
    this.#cells += cells;
    this.#failed += failed;
  }

  write(file = process.env.SLUICE_ABUSE_JSON): void {
    if (!file) return;
    const report = { runtime: this.#runtime, rows: this.#cells, passed: this.#cells - this.#failed };
    const path = file.replace(/(\.json)?$/, `.${this.#runtime}.json`);
    writeFileSync(resolve(path), `${JSON.stringify(report, null, 2)}\n`);
  }
}
