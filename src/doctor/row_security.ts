// Row security as the migrations set it up, and what of it a database does not have or has beyond that.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SideName } from '../migrate/sides.ts';
import { PROJECT_ROOT } from '../project_root.ts';

export interface Policy {
  readonly name: string;
  readonly table: string;
  readonly command: string;
  readonly roles: readonly string[];
  readonly is_permissive: boolean;
  readonly using: string | null;
  readonly check: string | null;
}

/** A row of row_security.sql; tables without the schema where that is public. */
export interface RowSecurity {
  readonly tables: readonly string[];
  readonly policies: readonly Policy[];
  /** Roles of callers that no policy holds for. */
  readonly exempt: readonly string[];
}

export function expectedRowSecurity(side: SideName): RowSecurity {
  const dir = join(PROJECT_ROOT, side, 'supabase', 'migrations');
  const files = readdirSync(dir).filter((file) => file.endsWith('.sql'));
  return parseRowSecurity(files.map((file) => readFileSync(join(dir, file), 'utf8')).join('\n'));
}

const ENABLED = /^alter table ([\w.]+) enable row level security;/gm;
const POLICY = /^create policy (\w+) on ([\w.]+)\s([^;]+);/gm;

/** Understands the two statements that the migrations use, each at the start of a line. */
export function parseRowSecurity(sql: string): RowSecurity {
  return {
    tables: [...sql.matchAll(ENABLED)].map(([, table = '']) => shortName(table)),
    policies: [...sql.matchAll(POLICY)].map(([, name = '', table = '', rest = '']) => ({
      name,
      table: shortName(table),
      command: /\bfor (select|insert|update|delete|all)\b/.exec(rest)?.[1] ?? 'all',
      roles: (/\bto ([\w, ]+?)\s*(?=\busing\b|\bwith check\b|$)/.exec(rest)?.[1] ?? 'public')
        .split(/,\s*/)
        .sort(),
      is_permissive: !/\bas restrictive\b/.test(rest),
      using: /\busing \(([\s\S]+?)\)\s*(?=\bwith check\b|$)/.exec(rest)?.[1] ?? null,
      check: /\bwith check \(([\s\S]+)\)\s*$/.exec(rest)?.[1] ?? null,
    })),
    exempt: [],
  };
}

/** One sentence for each difference. */
export function rowSecurityDifferences(expected: RowSecurity, actual: RowSecurity): string[] {
  const on = new Set(actual.tables);
  const found = new Map(actual.policies.map((policy) => [keyOf(policy), policy]));
  const known = new Set(expected.policies.map(keyOf));
  return [
    ...expected.tables.filter((table) => !on.has(table)).map((table) => `row security of ${table} is off`),
    ...actual.policies
      .filter((policy) => !known.has(keyOf(policy)))
      .map(({ name, table }) => `policy ${name} on ${table} is not ours`),
    ...expected.policies.flatMap((policy) => {
      const other = found.get(keyOf(policy));
      const title = `policy ${policy.name} on ${policy.table}`;
      if (other === undefined) return [`${title} is missing`];
      return gist(other) === gist(policy) ? [] : [`${title} was changed`];
    }),
    ...actual.exempt.map((role) => `row security does not hold for ${role}`),
  ];
}

const keyOf = ({ name, table }: Policy): string => `${table} ${name}`;

/** Postgres writes conditions with brackets and names of its own; without those, both spellings are one. */
function gist({ command, roles, is_permissive, using, check }: Policy): string {
  const plain = (text: string | null): string | null =>
    text
      ?.toLowerCase()
      .replace(/ as \w+/g, '')
      .replace(/[\s()]/g, '') ?? null;
  return JSON.stringify([command, roles, is_permissive, plain(using), plain(check)]);
}

const shortName = (table: string): string => table.replace(/^public\./, '');
