// A door with ports that live in memory: what the core does with them, without a runtime around it.

import {
  type ClaimOutcome,
  type ClaimPorts,
  type ClaimRecord,
  type ClaimRequest,
  ClaimRoutes,
} from '#core/claim.ts';
import { HttpError } from '#core/errors.ts';
import { type Clock, type Log, NO_METRICS } from '#core/ports.ts';
import { type HttpResponse, type Route, Router } from '#core/router.ts';

export interface LogLine {
  level: string;
  message: string;
  fields: Record<string, unknown> | undefined;
}

export function memoryLog(): Log & { lines: LogLine[] } {
  const lines: LogLine[] = [];
  const at = (level: string) => (message: string, fields?: Record<string, unknown>) => {
    lines.push({ level, message, fields });
  };
  return {
    lines,
    debugEnabled: true,
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
  };
}

export const CLAIM_ID = '11111111-1111-4111-8111-111111111111';
export const SLOT_ID = '22222222-2222-4222-8222-222222222222';
export const CLAIMED_AT = '2026-02-24T10:00:00Z';

export function outcome(ordinal: number, result: ClaimOutcome['outcome']): ClaimOutcome {
  const has = result === 'claimed' || result === 'same';
  return {
    ordinal,
    outcome: result,
    claim_id: has ? CLAIM_ID : null,
    resource_id: has ? SLOT_ID : null,
    state: has ? 'queued' : null,
    claimed_at: has ? CLAIMED_AT : null,
    hold_until: null,
    group_claims: null,
  };
}

export function record(change: Partial<ClaimRecord> = {}): ClaimRecord {
  return {
    claim_id: CLAIM_ID,
    resource_id: SLOT_ID,
    pool_id: 'p',
    user_id: 'ann',
    request_id: null,
    state: 'queued',
    verified: false,
    ending: false,
    claimed_at: CLAIMED_AT,
    hold_until: null,
    ended_at: null,
    end_reason: null,
    ahead: 0,
    secret_matches: null,
    label: null,
    order: null,
    ...change,
  };
}

const TOKENS: Record<string, { role: unknown; sub: unknown; is_anonymous?: unknown }> = {
  'ann-token': { role: 'authenticated', sub: 'ann' },
  'guest-token': { role: 'authenticated', sub: 'guest-1', is_anonymous: true },
  'bob-token': { role: 'authenticated', sub: 'bob' },
  'nameless-token': { role: 'authenticated', sub: undefined },
  'roleless-token': { role: undefined, sub: 'ann' },
  'anon-token': { role: 'anon', sub: undefined },
  'service-token': { role: 'service_role', sub: undefined },
};
export const ADMIN_KEY = 'admin-key';

export interface Memory {
  /** How often claimBatch was called. */
  batches: number;
  readonly seen: ClaimRequest[];
  /** Claim, and as which user or under which operator's name. */
  readonly released: [claimId: string, as: 'user' | 'operator', name: string][];
  result: ClaimOutcome['outcome'];
  claim: ClaimRecord | undefined;
}

/** Ports that answer from `memory`, which a test sets and reads. */
export function memoryPorts(): ClaimPorts & { memory: Memory } {
  const memory: Memory = { batches: 0, seen: [], released: [], result: 'claimed', claim: undefined };
  return {
    memory,
    metrics: NO_METRICS,
    log: memoryLog(),
    now: Date.now,
    findOperator: async (token) => (token === ADMIN_KEY ? { name: 'ada', role: 'operator' } : undefined),
    verifyToken: async (token) => {
      const claims = TOKENS[token];
      if (claims === undefined) throw new HttpError('auth_required');
      return { is_anonymous: undefined, ...claims };
    },
    claimBatch: async (requests) => {
      memory.batches++;
      memory.seen.push(...requests);
      return requests.map((_, index) => outcome(index + 1, memory.result)).reverse();
    },
    hash: (text) => `hash of ${text}`,
    addressOf: () => '203.0.113.1',
    getClaim: async () => memory.claim,
    releaseClaim: async (claimId, userId) => {
      memory.released.push([claimId, 'user', userId]);
      return memory.claim && { ...memory.claim, state: 'released' };
    },
    releaseAsOperator: async (claimId, actor) => {
      memory.released.push([claimId, 'operator', actor]);
      return memory.claim && { ...memory.claim, state: 'released' };
    },
  };
}

export interface Ask {
  method?: string;
  path?: string;
  headers?: Record<string, string>;
  body?: unknown;
}

export function askRoutes(routes: Route[], log: Log = memoryLog(), clock?: Clock) {
  const door = new Router(routes, log, clock);
  return async ({ method = 'GET', path = '/', headers = {}, body }: Ask) => {
    const json: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
    const response: HttpResponse = await door.handle(door.find(method, path), {
      method,
      path,
      headers: { ...json, ...headers },
      body: new TextEncoder().encode(
        typeof body === 'string' ? body : body === undefined ? '' : JSON.stringify(body),
      ),
      requestId: 'request-1',
    });
    const text = String(response.body);
    return { ...response, body: text, json: JSON.parse(text) };
  };
}

export function claimDoor(more: Partial<ClaimPorts> = {}) {
  const ports = { ...memoryPorts(), ...more };
  const ask = askRoutes(new ClaimRoutes(ports).routes());
  const claim = (body: unknown, headers: Record<string, string> = {}) =>
    ask({ method: 'POST', path: '/v1/pools/p/claims', headers, body });
  return { ask, claim, memory: ports.memory };
}
