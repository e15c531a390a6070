// The people with keys: which function of the intake each action on them is. The admin door and `sluice operators` both go through
// here. A key is shown once, in the answer that made it; the database has its hash.

import type { CallFunction } from '../call_function.ts';
import { HttpError } from '../errors.ts';
import { blameOf } from '../failure.ts';
import { operatorOf, REASON } from '../operator.ts';
import { checked } from '../query.ts';
import { ROLES, type Role } from '../roles.ts';
import { type HttpRequest, type HttpResponse, jsonResponse, type Route, readJson } from '../router.ts';
import type { Schema } from '../schema.ts';
import type { Signed } from '../webhook/operators.ts';
import { type Page, withReason } from './list.ts';

/** A row of public.operator_list. */
export interface OperatorView {
  readonly name: string;
  readonly role: Role;
  readonly key_made_at: string;
  readonly last_used_at: string | null;
  readonly revoked_at: string | null;
}

export interface OperatorKey {
  readonly name: string;
  /** In clear: it is not shown again. */
  readonly key: string;
}

export interface OperatorKeyPorts {
  /** Functions of schema public, and of schema audit, of the intake that keeps the operators. */
  readonly intake: CallFunction;
  readonly audit: CallFunction;
  /** Random, with its sha256. */
  newKey(): { readonly key: string; readonly hash: Uint8Array };
}

export interface OperatorKeys {
  list(): Promise<OperatorView[]>;
  add(name: string, role: Role, by: Signed): Promise<OperatorKey>;
  rotate(name: string, by: Signed): Promise<OperatorKey>;
  /** False where it was revoked before. */
  revoke(name: string, by: Signed): Promise<boolean>;
}

/** What only the owner may do is refused as the database refuses it. */
export function createOperatorKeys({ intake, audit, newKey }: OperatorKeyPorts): OperatorKeys {
  return {
    list: () => intake<OperatorView>('operator_list', {}),
    async add(name, role, by) {
      const { key, hash } = newKey();
      await audit('add_operator', { p_name: name, p_role: role, p_key_hash: hash, ...signedArgs(by) });
      return { name, key };
    },
    async rotate(name, by) {
      const { key, hash } = newKey();
      await audit('rotate_operator', { p_name: name, p_key_hash: hash, ...signedArgs(by) });
      return { name, key };
    },
    async revoke(name, by) {
      const args = { p_name: name, ...signedArgs(by) };
      const [row] = await audit<{ revoke_operator: boolean }>('revoke_operator', args);
      return row?.revoke_operator === true;
    },
  };
}

function signedArgs({ actor, reason }: Signed) {
  return { p_actor: actor, p_reason: reason };
}

const NAME = {
  type: 'string',
  minLength: 1,
  maxLength: 100,
  pattern: '^[^\\u0000-\\u001f\\u007f]+$',
  description: 'A person, as the audit log shall name them.',
} as const satisfies Schema;

export const OPERATOR_ADD_BODY = {
  type: 'object',
  properties: {
    name: NAME,
    role: { type: 'string', pattern: `^(${ROLES.join('|')})$` },
    reason: REASON,
  },
  required: ['name', 'role'],
  additionalProperties: false,
} as const satisfies Schema;

export const OPERATOR_BODY = {
  type: 'object',
  properties: { reason: REASON },
  additionalProperties: false,
} as const satisfies Schema;

export interface OperatorAdminPorts {
  readonly keys: OperatorKeys;
  /** The ledger is told of a change, without keeping the operator waiting. */
  onChanged(): void;
}

export function operatorAdminRoutes({ keys, onChanged }: OperatorAdminPorts): Route[] {
  const changed = async <Result>(change: Promise<Result>): Promise<Result> => {
    const result = await withReason(change.catch(refuseOwners));
    onChanged();
    return result;
  };
  const signed = (request: HttpRequest): Signed => {
    const { reason = null } = readJson(request, OPERATOR_BODY);
    return { actor: operatorOf(request), reason };
  };
  const nameOf = (given: string): string => checked(NAME, given, 'The name');

  async function add(request: HttpRequest): Promise<HttpResponse> {
    const { name, role, reason = null } = readJson(request, OPERATOR_ADD_BODY);
    const by = { actor: operatorOf(request), reason };
    return jsonResponse(201, await changed(keys.add(name, role as Role, by)));
  }
  async function rotate(request: HttpRequest, given: string): Promise<HttpResponse> {
    return jsonResponse(200, await changed(keys.rotate(nameOf(given), signed(request))));
  }
  async function revoke(request: HttpRequest, given: string): Promise<HttpResponse> {
    const name = nameOf(given);
    return jsonResponse(200, { name, revoked: await changed(keys.revoke(name, signed(request))) });
  }
  return [
    {
      method: 'GET',
      path: '/admin/operators',
      handle: async () =>
        jsonResponse(200, { items: await keys.list(), next: null } satisfies Page<OperatorView>),
    },
    { method: 'POST', path: '/admin/operators', handle: add },
    { method: 'POST', path: '/admin/operators/:operator/rotate', handle: rotate },
    { method: 'POST', path: '/admin/operators/:operator/revoke', handle: revoke },
  ];
}

/** A server whose role is not the owner's changes the operators only where the owner lets it (docs/secure.md). */
function refuseOwners(error: unknown): never {
  if (blameOf(error) === 'denied') throw new HttpError('owner_required', undefined, error);
  throw error;
}
