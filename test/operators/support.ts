// People with keys, for tests.

import { createHash } from 'node:crypto';
import type pg from 'pg';
import type { Role } from '#core/roles.ts';

/** Adds an operator as the owner would; returns the key. */
export async function addOperator(db1: pg.Client, name: string, role: Role): Promise<string> {
  const key = `slo_key of ${name}`.replaceAll(/[^\x21-\x7e]/g, '_');
  const hash = createHash('sha256').update(key).digest();
  await db1.query('select audit.add_operator($1, $2, $3, $4)', [name, role, hash, 'owner']);
  return key;
}
