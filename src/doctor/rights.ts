// The golden list of rights, read from the migration that grants them: what it says is what must be so.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOT } from '../project_root.ts';

export interface Grant {
  readonly role: string;
  readonly privilege: string;
  /** A table, or a function with its argument types. */
  readonly object: string;
}

export interface ExpectedRights {
  readonly schemas: string[];
  readonly grants: Grant[];
}

/** A row of right_differences.sql. */
export interface RightDifference extends Grant {
  readonly kind: 'missing' | 'extra';
}

const FILE = '20260224110000_access_rights.sql';

export function expectedRights(side: 'db1' | 'db2'): ExpectedRights {
  return parseRights(readFileSync(join(PROJECT_ROOT, side, 'supabase', 'migrations', FILE), 'utf8'));
}

/** Understands what the migration is made of: the schemas whose routines it closes, and "grant … on … to …". */
export function parseRights(sql: string): ExpectedRights {
  const statements = sql
    .replace(/--.*$/gm, '')
    .split(';')
    .map((statement) => statement.replace(/\s+/g, ' ').trim());
  const [, closed = ''] = /= p\.pronamespace and n\.nspname in \(([^)]+)\)/.exec(sql) ?? [];
  const schemas = closed.split(', ').map((name) => name.replaceAll("'", ''));
  const grants = statements.flatMap((text) => {
    const [, privileges = '', kind, objects = '', roles = ''] =
      /^grant (.+?) on (function |procedure |sequence |schema |table )?(.+) to (.+)$/.exec(text) ?? [];
    if (kind === 'sequence ' || kind === 'schema ') return [];
    return split(objects).flatMap((object) =>
      roles
        .split(', ')
        .flatMap((role) => privileges.split(', ').map((privilege) => ({ role, privilege, object }))),
    );
  });
  return { schemas, grants };
}

/** At commas outside brackets. */
function split(list: string): string[] {
  return list === '' ? [] : list.split(/, (?![^(]*\))/).map((item) => item.trim());
}
