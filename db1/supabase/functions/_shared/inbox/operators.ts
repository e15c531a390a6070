// What operators see of the inbox and do with its dead letters: the functions of DB1, and the doors of the admin API.

import type { CallFunction } from '../call_function.ts';
import { type Authorize, type OperatorRoute, operatorOf, operatorRoutes, REASON } from '../operator.ts';
import { readQuery } from '../query.ts';
import { type HttpRequest, jsonResponse, readJson } from '../router.ts';
import type { Schema } from '../schema.ts';

/** A row of public.inbox_list. */
export interface InboxRow {
  readonly msg_id: number;
  readonly kind: 'event' | 'call';
  /** The endpoint's name, or the site's id. */
  readonly door: string;
  /** What the sender calls its events; some of them where there are many. */
  readonly ids: readonly string[];
  readonly received_at: string;
  readonly attempts: number;
  readonly error: string | null;
  /** Null where it waits. */
  readonly dead_since: string | null;
}

export interface InboxResult {
  readonly msg_id: number;
  readonly outcome: string;
}

export interface InboxAction {
  readonly msgIds: readonly number[];
  readonly actor: string;
  readonly reason: string | null;
}

export interface InboxOperatorStore {
  list(isDead: boolean, after: number, limit: number): Promise<InboxRow[]>;
  replay(action: InboxAction): Promise<InboxResult[]>;
  discard(action: InboxAction): Promise<InboxResult[]>;
}

/** `call` takes names of functions in schema public of DB1. */
export function createInboxOperatorStore(call: CallFunction): InboxOperatorStore {
  const end = (functionName: string) => (action: InboxAction) =>
    call<InboxResult>(functionName, {
      p_msg_ids: action.msgIds,
      p_actor: action.actor,
      p_reason: action.reason,
    });
  return {
    list: (isDead, after, limit) =>
      call<InboxRow>('inbox_list', { p_dead: isDead, p_after: after, p_limit: limit }),
    replay: end('inbox_replay'),
    discard: end('inbox_discard'),
  };
}

const MAX_BODY_BYTES = 64 * 1024;
const MAX_MSG_IDS = 1_000;
const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1_000;
const MSG_ID = { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER } as const satisfies Schema;

export const INBOX_QUERY = {
  type: 'object',
  properties: {
    state: {
      type: 'string',
      pattern: '^(waiting|dead_letter)$',
      description: 'waiting where left out',
    },
    after: { ...MSG_ID, description: 'the last msg_id of the page before' },
    limit: { type: 'integer', minimum: 1, maximum: MAX_LIMIT },
  },
  additionalProperties: false,
} as const satisfies Schema;

export const INBOX_BODY = {
  type: 'object',
  properties: {
    msg_ids: { type: 'array', items: MSG_ID, minItems: 1, maxItems: MAX_MSG_IDS },
    reason: REASON,
  },
  required: ['msg_ids'],
  additionalProperties: false,
} as const satisfies Schema;

export function inboxRoutes(
  prefix: string,
  store: InboxOperatorStore,
  authorize: Authorize,
): OperatorRoute[] {
  const act = (work: (action: InboxAction) => Promise<InboxResult[]>) => async (request: HttpRequest) => {
    const unnamed = await authorize(request);
    const { msg_ids: msgIds, reason = null } = readJson(request, INBOX_BODY);
    const actor = operatorOf(request) ?? unnamed;
    return jsonResponse(200, { results: await work({ msgIds, actor, reason }) });
  };
  return operatorRoutes(prefix, MAX_BODY_BYTES, [
    [
      'GET',
      '',
      async (request) => {
        await authorize(request);
        const { state, after = 0, limit = DEFAULT_LIMIT } = readQuery(request.query, INBOX_QUERY);
        return jsonResponse(200, { deliveries: await store.list(state === 'dead_letter', after, limit) });
      },
    ],
    ['POST', '/replay', act(store.replay)],
    ['POST', '/discard', act(store.discard)],
  ]);
}
