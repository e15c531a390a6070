// What is said about a user beside the lists of claims, orders, tickets, payments and credits: the balance with each tenant, and what
// operators did. A database that is away is named; the other is shown.

import type { CallFunction } from '../call_function.ts';
import type { AuditRow } from '../console/audit.ts';
import { GIVEN_ID } from '../console/list.ts';
import { canWait } from '../failure.ts';
import type { Log } from '../ports.ts';
import { checked } from '../query.ts';
import { type HttpResponse, jsonResponse, type Route } from '../router.ts';

export interface Balance {
  /** The tenant. */
  readonly provider: string;
  readonly currency: string;
  /** In minor units. */
  readonly amount: number;
}

export interface UserSummary {
  readonly user_id: string;
  /** Null while DB2 is away. */
  readonly balance: readonly Balance[] | null;
  readonly audit: readonly (AuditRow & { readonly db: 1 | 2 })[];
  readonly away: readonly string[];
}

export interface SummaryPorts {
  readonly db1: CallFunction;
  readonly db2: CallFunction;
  /** Functions of schema webhook. */
  readonly webhook: CallFunction;
  readonly log: Log;
}

export function userSummaryRoutes(ports: SummaryPorts): Route[] {
  return [{ method: 'GET', path: '/admin/users/:user/summary', handle: (_, user) => summary(ports, user) }];
}

async function summary({ db1, db2, webhook, log }: SummaryPorts, given: string): Promise<HttpResponse> {
  const user_id = checked(GIVEN_ID, given, 'The user');
  const away = new Set<string>();
  const ask = async <Value>(name: string, asked: Promise<Value>): Promise<Value | undefined> => {
    try {
      return await asked;
    } catch (cause) {
      if (!canWait(cause)) throw cause;
      log.warn('a database cannot be asked about a user', { database: name, cause });
      away.add(name);
      return undefined;
    }
  };
  const [intake = [], ledger = [], balance = null] = await Promise.all([
    ask('DB1', db1<AuditRow>('user_audit', { p_user_id: user_id })),
    ask('DB2', db2<AuditRow>('user_audit', { p_user_id: user_id })),
    ask('DB2', webhook<Balance>('balance', { p_user_id: user_id })),
  ]);
  return jsonResponse(200, {
    user_id,
    balance,
    audit: [
      ...intake.map((row) => ({ ...row, db: 1 as const })),
      ...ledger.map((row) => ({ ...row, db: 2 as const })),
    ],
    away: [...away],
  } satisfies UserSummary);
}
