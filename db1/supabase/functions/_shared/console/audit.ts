// What operators did, newest first; each database keeps its own log.

import type { CallFunction } from '../call_function.ts';
import { readQuery } from '../query.ts';
import type { Route } from '../router.ts';
import type { Schema } from '../schema.ts';
import { DEFAULT_LIMIT, GIVEN_ID, LIMIT, offsetOf, PAGE, pageOf } from './list.ts';

/** A row of public.audit_page. */
export interface AuditRow {
  readonly id: number;
  readonly at: string;
  readonly actor: string;
  readonly action: string;
  readonly subject: string;
  readonly reason: string | null;
  readonly details: Readonly<Record<string, unknown>>;
  /** The session's user, and the role it took: what the database saw, where the actor is what the caller said. */
  readonly written_by: string;
  /** What the transaction changed of the rules; null where that is nothing. */
  readonly changed: readonly Readonly<Record<string, unknown>>[] | null;
  /** Where the intake has several cells: the one that wrote it down. */
  readonly cell?: string;
}

export const AUDIT_QUERY = {
  type: 'object',
  properties: {
    db: {
      type: 'integer',
      minimum: 1,
      maximum: 2,
      description: '1 the intake (as when left out), 2 the ledger.',
    },
    cell: {
      type: 'string',
      minLength: 1,
      maxLength: 32,
      description: 'Of the intake: one cell. Without it the newest rows of all cells are one page.',
    },
    actor: GIVEN_ID,
    action: GIVEN_ID,
    subject: { ...GIVEN_ID, maxLength: 500 },
    id: { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
    after: { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
    page: PAGE,
    limit: LIMIT,
  },
  additionalProperties: false,
} as const satisfies Schema;

/** As audit_page and audit_total take them. */
export function auditFilters(query: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { actor = null, action = null, subject = null, id = null } = query;
  return { p_actor: actor, p_action: action, p_subject: subject, p_id: id };
}

export function auditRoutes(db1: CallFunction, db2: CallFunction): Route[] {
  return [
    {
      method: 'GET',
      path: '/admin/audit',
      async handle(request) {
        const query = readQuery(request.query, AUDIT_QUERY);
        const { db = 1, cell, after, limit = DEFAULT_LIMIT } = query;
        const call = db === 1 ? db1 : db2;
        const args = {
          ...auditFilters(query),
          p_before: after ?? null,
          p_limit: limit,
          p_offset: offsetOf({ ...query, limit }),
        };
        const isOfCell = db === 1 && cell !== undefined;
        const rows = await call<AuditRow>('audit_page', isOfCell ? { ...args, p_cell: cell } : args);
        // Each cell has numbers of its own: rows of several have no next page.
        const isMixed = !isOfCell && rows.some((row) => row.cell !== undefined);
        return pageOf(rows, isMixed ? Number.POSITIVE_INFINITY : limit, (row) => String(row.id));
      },
    },
  ];
}
