// An operator takes tickets back. DB2 writes the wish down with its audit row; the courier carries it out: tombstone first, then
// the slot goes on sale again.

import type { CallFunction } from '../call_function.ts';
import type { ClaimRecord } from '../claim.ts';
import { HttpError } from '../errors.ts';
import { operatorOf, REASON, UUID } from '../operator.ts';
import { type HttpRequest, type HttpResponse, jsonResponse, type Route, readJson } from '../router.ts';
import type { Schema } from '../schema.ts';

export interface VoidPorts {
  readonly db1: CallFunction;
  readonly db2: CallFunction;
}

export interface VoidResult {
  readonly claim_id: string;
  readonly outcome: string;
}

/** Each is looked at in its cell before anything is asked of the ledger. */
const MAX_CLAIMS = 100;
const MAX_BODY_BYTES = 16 * 1024;
/**
 * From these a claim can be taken back; a held one is released instead, and what has ended stays ended. One that was voided can be
 * taken back again while DB2 has its ticket (DB2 was restored to a moment before the void), and with a refund while the seller
 * keeps its price.
 */
const VOIDABLE: ReadonlySet<string> = new Set(['queued', 'validated', 'committed', 'dead_letter']);

export const VOID_BODY = {
  type: 'object',
  properties: {
    claim_ids: { type: 'array', items: UUID, minItems: 1, maxItems: MAX_CLAIMS },
    refund: {
      type: 'boolean',
      description:
        'Pay the price of each back, also of one that was voided without. Left out, the money stays.',
    },
    reason: { ...REASON, description: 'Why, for the audit log. A dry run needs none.' },
    dry_run: { type: 'boolean', description: 'Says what would be done and changes nothing.' },
  },
  required: ['claim_ids'],
  additionalProperties: false,
} as const satisfies Schema;

/** Listed before `/admin/claims/:claim`, which would take "void" for a claim id. */
export function voidRoutes(ports: VoidPorts): Route[] {
  return [
    {
      method: 'POST',
      path: '/admin/claims/void',
      maxBodyBytes: MAX_BODY_BYTES,
      handle: (request) => voidClaims(ports, request),
    },
  ];
}

async function voidClaims({ db1, db2 }: VoidPorts, request: HttpRequest): Promise<HttpResponse> {
  const { claim_ids, refund = false, reason, dry_run = false } = readJson(request, VOID_BODY);
  if (reason === undefined && !dry_run) throw new HttpError('invalid_input', 'The body lacks "reason".');
  const planned: VoidResult[] = [];
  for (const claim_id of new Set(claim_ids.map((id) => id.toLowerCase()))) {
    const [claim] = await db1<ClaimRecord>('get_claim', { p_claim_id: claim_id });
    const isBack =
      claim?.state === 'voided' &&
      ((await hasTicket(db2, claim_id)) || (refund && (await isKept(db2, claim_id))));
    planned.push({ claim_id, outcome: isBack ? WOULD : outcomeFor(claim) });
  }
  const wanted = planned.filter(({ outcome }) => outcome === WOULD).map(({ claim_id }) => claim_id);
  if (dry_run || wanted.length === 0) return jsonResponse(200, { results: planned });
  await db2('request_void', {
    p_claim_ids: wanted,
    p_refund: refund,
    p_actor: operatorOf(request),
    p_reason: reason,
  });
  const results = planned.map((one) => (one.outcome === WOULD ? { ...one, outcome: 'void_requested' } : one));
  return jsonResponse(200, { results });
}

const WOULD = 'would_void';

async function hasTicket(db2: CallFunction, claimId: string): Promise<boolean> {
  const [ticket] = await db2<{ voided_at: string | null }>('ticket_details', { p_claim_id: claimId });
  return ticket?.voided_at === null;
}

async function isKept(db2: CallFunction, claimId: string): Promise<boolean> {
  return (await db2('kept_claims', { p_claim_ids: [claimId] })).length > 0;
}

function outcomeFor(claim: ClaimRecord | undefined): string {
  if (claim === undefined) return 'unknown_claim';
  if (VOIDABLE.has(claim.state)) return WOULD;
  return claim.state === 'held' ? 'held_release_instead' : `already_${claim.state}`;
}
