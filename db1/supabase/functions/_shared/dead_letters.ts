// The dead letters' door: list, show, replay, discard. The Edge Function admin-dlq and Node's admin API are these routes
// behind their own authentication. Every answer about ids is one result per id, never a count.

import { createEndPorts, Ender, type EndOutcome } from './bridge/ends.ts';
import type { CallFunction } from './call_function.ts';
import { offsetOf, PAGE } from './console/list.ts';
import { HttpError } from './errors.ts';
import { canWait } from './failure.ts';
import { type Authorize, type OperatorRoute, operatorRoutes } from './operator.ts';
import type { Log } from './ports.ts';
import { checked, digits, readQuery } from './query.ts';
import { type HttpRequest, type HttpResponse, jsonResponse, readJson } from './router.ts';
import type { Schema } from './schema.ts';

/** A row of public.list_dead_letters. */
export interface DeadLetter {
  readonly msg_id: number;
  readonly pool_id: string | null;
  readonly claim_id: string | null;
  readonly resource_id: string | null;
  readonly user_id: string | null;
  readonly reason: string;
  readonly final_read_ct: string | null;
  readonly original_msg_id: string | null;
  readonly dead_since: string;
  readonly claim_state: string | null;
  readonly message: unknown;
  /** It was discarded, or its hold ran out: it is gone when the ledger knows. */
  readonly ending: boolean;
  /** Where there are several cells: the one that has it. */
  readonly cell?: string;
}

/** A row of public.replay_dead_letters and public.discard_dead_letters. */
export interface DeadLetterResult {
  readonly msg_id: number;
  readonly outcome: string;
  /** Of a discard: the claim that is ending, or voiding. */
  readonly claim_id?: string | null;
}

/** What is left out does not filter. */
export interface DeadLetterFilter {
  readonly pool_id?: string;
  /** The beginning of the reason. */
  readonly reason?: string;
  readonly older_than_sec?: number;
  readonly msg_ids?: readonly number[];
  /** The last msg_id of the page before. */
  readonly after?: number;
  readonly limit?: number;
  /** How many are left out at the beginning; none where left out. */
  readonly offset?: number;
}

export interface DeadLetterAction {
  readonly msgIds: readonly number[];
  readonly actor: string;
  readonly reason: string | null;
  readonly dryRun: boolean;
}

export interface DeadLetterStore {
  list(filter: DeadLetterFilter): Promise<DeadLetter[]>;
  replay(action: DeadLetterAction): Promise<DeadLetterResult[]>;
  discard(action: DeadLetterAction): Promise<DeadLetterResult[]>;
}

export interface DeadLetterPorts extends DeadLetterStore {
  authorize: Authorize;
}

export const DEAD_LETTER_MAX_BODY_BYTES = 64 * 1024;
/** One action is one transaction that holds the lock of each letter: bounded, so that it stays short. */
export const DEAD_LETTER_MAX_MSG_IDS = 1_000;
export const DEAD_LETTER_DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1_000;
const MAX_TEXT_CHARS = 500;

const MSG_ID = { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER } as const satisfies Schema;

export const DEAD_LETTER_BODY = {
  type: 'object',
  properties: {
    msg_ids: { type: 'array', items: MSG_ID, minItems: 1, maxItems: DEAD_LETTER_MAX_MSG_IDS },
    reason: {
      type: 'string',
      minLength: 1,
      maxLength: MAX_TEXT_CHARS,
      description: 'Why, for the audit log.',
    },
    dry_run: { type: 'boolean', description: 'Says what would be done and changes nothing.' },
  },
  required: ['msg_ids'],
  additionalProperties: false,
} as const satisfies Schema;

export const DEAD_LETTER_QUERY = {
  type: 'object',
  properties: {
    pool_id: { type: 'string', minLength: 1, maxLength: 200 },
    reason: { type: 'string', minLength: 1, maxLength: MAX_TEXT_CHARS },
    // A century: far beyond any letter, and well within an interval.
    older_than_sec: { type: 'integer', minimum: 0, maximum: 3_155_760_000 },
    after: { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
    page: PAGE,
    limit: { type: 'integer', minimum: 1, maximum: MAX_LIMIT },
  },
  additionalProperties: false,
} as const satisfies Schema;

/** The store on top of the SQL functions, for any runtime that can call one. */
export function createDeadLetterStore(call: CallFunction): DeadLetterStore {
  const act = (functionName: string) => (action: DeadLetterAction) =>
    call<DeadLetterResult>(functionName, {
      p_msg_ids: action.msgIds,
      p_actor: action.actor,
      p_reason: action.reason,
      p_dry_run: action.dryRun,
    });
  return {
    list: (filter) =>
      call<DeadLetter>('list_dead_letters', {
        p_pool_id: filter.pool_id ?? null,
        p_reason: filter.reason ?? null,
        p_older_than: filter.older_than_sec === undefined ? null : `${filter.older_than_sec} seconds`,
        p_msg_ids: filter.msg_ids ?? null,
        p_after: filter.after ?? 0,
        p_limit: filter.limit ?? DEAD_LETTER_DEFAULT_LIMIT,
        p_offset: filter.offset ?? 0,
      }),
    replay: act('replay_dead_letters'),
    discard: act('discard_dead_letters'),
  };
}

/** The longest that a discard waits for the ledger. A worker goes on when this lease is over. */
const END_SEC = 1;
const ENDED: Readonly<Record<EndOutcome, string>> = { voided: 'discarded', ticket: 'committed' };

/**
 * As `createDeadLetterStore`, and a discard ends what it can: while the ledger is away, that stays `ending`. A claim that was paid for
 * is voided and refunded instead, which begins in the ledger: `voiding`, or `paid`, and nothing has changed, while the ledger is away.
 */
export function createEndingStore(db1: CallFunction, db2: CallFunction, log: Log): DeadLetterStore {
  const store = createDeadLetterStore(db1);
  const ends = createEndPorts(db1, () => db2, log);
  return {
    ...store,
    async discard(action) {
      const results = await voidPaid(await store.discard(action), action, db2, log);
      if (action.dryRun || !results.some(({ outcome }) => outcome === 'ending')) return results;
      const ended = new Map<string, string>();
      try {
        await new Ender(ends, END_SEC).end(AbortSignal.timeout(END_SEC * 1_000), (claimId, outcome) =>
          ended.set(claimId, ENDED[outcome]),
        );
      } catch (cause) {
        log.warn('discarded claims wait for the ledger', { cause });
      }
      return results.map((result) => {
        const outcome = result.outcome === 'ending' && ended.get(result.claim_id ?? '');
        return outcome ? { ...result, outcome } : result;
      });
    },
  };
}

async function voidPaid(
  results: readonly DeadLetterResult[],
  { dryRun, actor, reason }: DeadLetterAction,
  db2: CallFunction,
  log: Log,
): Promise<DeadLetterResult[]> {
  const claimIds = results.flatMap(({ outcome, claim_id }) =>
    outcome === 'paid' && claim_id ? [claim_id] : [],
  );
  const told = (outcome: string) =>
    results.map((result) => (result.outcome === 'paid' ? { ...result, outcome } : result));
  if (claimIds.length === 0) return [...results];
  if (dryRun) return told('would_void');
  try {
    await db2('request_void', { p_claim_ids: claimIds, p_refund: true, p_actor: actor, p_reason: reason });
    return told('voiding');
  } catch (cause) {
    if (!canWait(cause)) throw cause;
    log.warn('dead letters of paid claims stay: the ledger is away', { cause });
    return [...results];
  }
}

export class DeadLetterRoutes {
  readonly #ports: DeadLetterPorts;

  constructor(ports: DeadLetterPorts) {
    this.#ports = ports;
  }

  /** The order matters: "replay" and "discard" are no message ids. */
  routes(prefix: string): OperatorRoute[] {
    return operatorRoutes(prefix, DEAD_LETTER_MAX_BODY_BYTES, [
      ['GET', '', (request) => this.#list(request)],
      ['POST', '/replay', (request) => this.#act(request, (action) => this.#ports.replay(action))],
      ['POST', '/discard', (request) => this.#act(request, (action) => this.#ports.discard(action))],
      ['GET', '/:msg_id', (request, id) => this.#show(request, id)],
    ]);
  }

  async #list(request: HttpRequest): Promise<HttpResponse> {
    await this.#ports.authorize(request);
    const { page, ...filter } = readQuery(request.query, DEAD_LETTER_QUERY);
    const { after, limit = DEAD_LETTER_DEFAULT_LIMIT } = filter;
    const offset = offsetOf({ page, after, limit });
    return jsonResponse(200, { messages: await this.#ports.list({ ...filter, offset }) });
  }

  async #show(request: HttpRequest, id: string): Promise<HttpResponse> {
    await this.#ports.authorize(request);
    const msgId = checked(MSG_ID, digits(id), 'msg_id');
    const [letter] = await this.#ports.list({ msg_ids: [msgId], limit: 1 });
    if (letter === undefined) throw new HttpError('not_found', 'No dead letter has this id.');
    return jsonResponse(200, letter);
  }

  async #act(request: HttpRequest, action: DeadLetterStore['replay']): Promise<HttpResponse> {
    const actor = await this.#ports.authorize(request);
    const body = readJson(request, DEAD_LETTER_BODY);
    const results = await action({
      msgIds: body.msg_ids,
      actor,
      reason: body.reason ?? null,
      dryRun: body.dry_run ?? false,
    });
    return jsonResponse(200, { results });
  }
}
