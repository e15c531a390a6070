// What clients were told, on disk: one file of JSON lines per client, written before the client asks anything else. The
// history that is judged is read back from here, so a run that dies has still said what it knew.

import { closeSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type {
  CallEventCall,
  ClaimCall,
  EventCall,
  HealthyCall,
  OperatorCall,
  ReleaseCall,
  TargetCall,
} from './history.ts';
import type { OrderCall, VoidCall } from './paid_history.ts';

/** The kinds of lines and what each holds. */
export type Entries = {
  claim: ClaimCall;
  release: ReleaseCall;
  event: EventCall;
  call: CallEventCall;
  operator: OperatorCall;
  target: TargetCall;
  poison: { id: string };
  healthy: HealthyCall;
  order: OrderCall;
  void: VoidCall;
};

export type Kind = keyof Entries;

export class Journal {
  readonly #dir: string;
  readonly #files = new Map<string, number>();

  constructor(dir: string) {
    this.#dir = dir;
  }

  /**
   * Returns when the system has the line. It is not forced to the disk: processes are killed here, the machine is not, and
   * what the system has outlives this process.
   */
  write<K extends Kind>(client: string, kind: K, entry: Entries[K]): void {
    let file = this.#files.get(client);
    if (file === undefined) {
      file = openSync(join(this.#dir, `${client}.ndjson`), 'a', 0o600);
      this.#files.set(client, file);
    }
    writeSync(file, `${JSON.stringify({ kind, entry })}\n`);
  }

  close(): void {
    for (const file of this.#files.values()) closeSync(file);
    this.#files.clear();
  }
}

export type Journalled = { [K in Kind]: Entries[K][] };

/** What a line is about, where a later line about the same replaces it: clients write after every answer. */
const SUBJECTS: { [K in Kind]?: (entry: Entries[K]) => string } = {
  claim: ({ poolId, requestId }) => `${poolId}/${requestId}`,
  event: ({ provider, eventId }) => `${provider}/${eventId}`,
  call: ({ siteId, signatureHash }) => `${siteId}/${signatureHash}`,
  order: ({ orderId }) => orderId,
  void: ({ reason }) => reason,
};

/** Everything in the journals of this folder. A last line without its end was never finished, and counts for nothing. */
export function readJournals(dir: string): Journalled {
  const lines = readLines(dir);
  for (const kind of Object.keys(SUBJECTS) as Kind[]) {
    const subjectOf = SUBJECTS[kind] as (entry: unknown) => string;
    const last = new Map((lines[kind] as unknown[]).map((entry) => [subjectOf(entry), entry]));
    (lines[kind] as unknown[]) = [...last.values()];
  }
  return lines;
}

function readLines(dir: string): Journalled {
  const found: Journalled = {
    claim: [],
    release: [],
    event: [],
    call: [],
    operator: [],
    target: [],
    poison: [],
    healthy: [],
    order: [],
    void: [],
  };
  for (const name of readdirSync(dir).sort()) {
    if (!name.endsWith('.ndjson')) continue;
    const lines = readFileSync(join(dir, name), 'utf8').split('\n');
    lines.pop();
    for (const line of lines) {
      const { kind, entry } = JSON.parse(line) as { kind: Kind; entry: unknown };
      if (!(kind in found)) throw new Error(`${name} has a line of kind ${kind}, which is unknown`);
      (found[kind] as unknown[]).push(entry);
    }
  }
  return found;
}
