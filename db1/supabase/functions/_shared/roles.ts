// What each role of an operator may do. An operators' route that is not in the table is not served.

import { HttpError } from './errors.ts';

export const ROLES = ['viewer', 'scanner', 'operator', 'admin'] as const;
export type Role = (typeof ROLES)[number];

/** A person with a key. */
export interface Operator {
  readonly name: string;
  readonly role: Role;
}

/** What is needed: this role or one that includes it; 'anyone' is any operator. */
export type LeastRole = Role | 'anyone';

/** A scanner checks tickets at the entrance, on a telephone that can be lost: it does not see what a viewer sees. */
const INCLUDED: Readonly<Record<Role, readonly Role[]>> = {
  viewer: ['viewer'],
  scanner: ['scanner'],
  operator: ['viewer', 'scanner', 'operator'],
  admin: ROLES,
};

/** Least role by "METHOD /path". Operators act on claims, letters, events and pools; admins decide who may deliver events and who is an operator. */
export const ADMIN_ROLES: Readonly<Record<string, LeastRole>> = {
  'GET /admin/session': 'anyone',
  'DELETE /admin/session': 'anyone',
  'GET /admin/live': 'viewer',
  'GET /admin/samples': 'viewer',
  'GET /admin/health': 'viewer',
  'GET /admin/audit': 'viewer',
  'GET /admin/search': 'viewer',
  'GET /admin/totals/:list': 'viewer',
  'GET /admin/export/:list': 'viewer',
  'GET /admin/tickets': 'viewer',
  'GET /admin/tickets/:ticket': 'viewer',
  'GET /admin/payments': 'viewer',
  'GET /admin/payments/:payment': 'viewer',
  'GET /admin/credits': 'viewer',
  'GET /admin/users/:user/summary': 'viewer',
  'GET /admin/pools': 'viewer',
  'GET /admin/pools/:pool': 'viewer',
  'POST /admin/pools': 'operator',
  'POST /admin/pools/:pool': 'operator',
  'GET /admin/pools/:pool/details': 'viewer',
  'POST /admin/pools/:pool/details': 'operator',
  'GET /admin/claims': 'viewer',
  'GET /admin/claims/:claim': 'viewer',
  'POST /admin/claims/:claim/release': 'operator',
  'POST /admin/claims/void': 'operator',
  'GET /admin/orders': 'viewer',
  'GET /admin/orders/:order': 'viewer',
  'GET /admin/refunds': 'viewer',
  'GET /admin/refunds/:refund': 'viewer',
  'POST /admin/refunds/send': 'operator',
  'POST /admin/refunds/skip': 'operator',
  'GET /admin/calls': 'viewer',
  'GET /admin/calls/:id': 'viewer',
  'GET /admin/sites': 'viewer',
  'GET /admin/sites/:site': 'viewer',
  'POST /admin/sites': 'admin',
  'POST /admin/sites/:site': 'admin',
  'POST /admin/sites/:site/rotate': 'admin',
  'GET /admin/operators': 'viewer',
  'POST /admin/operators': 'admin',
  'POST /admin/operators/:operator/rotate': 'admin',
  'POST /admin/operators/:operator/revoke': 'admin',
  'GET /admin/dlq': 'viewer',
  'GET /admin/dlq/:msg_id': 'viewer',
  'POST /admin/dlq/replay': 'operator',
  'POST /admin/dlq/discard': 'operator',
  'GET /admin/issues': 'viewer',
  'GET /admin/issues/:issue': 'viewer',
  'POST /admin/issues/:issue/replay': 'operator',
  'POST /admin/issues/:issue/resolve': 'operator',
  'GET /admin/webhooks/endpoints': 'viewer',
  'POST /admin/webhooks/endpoints': 'admin',
  'POST /admin/webhooks/endpoints/change': 'admin',
  'POST /admin/webhooks/endpoints/rotate': 'admin',
  'GET /admin/webhooks/events': 'viewer',
  'GET /admin/webhooks/events/:id': 'viewer',
  'POST /admin/webhooks/events/replay': 'operator',
  'POST /admin/webhooks/events/skip': 'operator',
  'GET /admin/webhooks/payments': 'viewer',
  'POST /admin/webhooks/payments/name': 'operator',
  'GET /admin/webhooks/inbox': 'viewer',
  'POST /admin/webhooks/inbox/replay': 'operator',
  'POST /admin/webhooks/inbox/discard': 'operator',
  'POST /v1/tickets/check': 'scanner',
  'POST /admin/users/export': 'admin',
  'POST /admin/users/erase': 'admin',
};

export function isRole(text: unknown): text is Role {
  return ROLES.some((role) => role === text);
}

export function allows(role: Role, least: LeastRole): boolean {
  return least === 'anyone' || INCLUDED[role].includes(least);
}

/** Throws a HttpError where the operator's role is not enough. */
export function requireRole({ role }: Operator, least: LeastRole): void {
  if (!allows(role, least))
    throw new HttpError('role_refused', `This needs the role ${least}; your key has the role ${role}.`);
}
