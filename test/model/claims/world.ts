// The real intake and ledger of one lane, by the calls that servers, workers and operators make.

import {
  findDifferences,
  type ReconcilePorts,
  type SlotRow,
  type TicketRow,
  type VoidedRow,
} from '#core/reconcile.ts';
import { WITHOUT_A_TRACE } from '../../support/lost_tickets.ts';
import type { Lane } from '../lanes.ts';
import type { ClaimAnswer, Finish, IntakeState, Request, Taken, TicketState, Told } from './answers.ts';
import type { Claim, Delivery, Heard, Message, Pool, Slot } from './model.ts';
import { CLEAN, INTAKE_STATE, LEDGER_STATE, LOSE_CACHE, SWEEP } from './statements.ts';

export type * from './answers.ts';

export const ACTOR = 'ada';
/** Far longer than a history: what runs out is moved, never waited for. */
const LEASE_SEC = 3600;
const HOLD_SEC = 3600;
/** After so many histories their dead rows cost more than a TRUNCATE. */
const HISTORIES_PER_SWEEP = 200;

const TAKEN = `msg_id::float8 as id, read_ct as "readCt", attempts, takeovers, message ->> 'claim_id' as claim,
  claim_state as state`;

const SINGLE_OUTCOMES: Record<string, string> = {
  SL003: 'closed',
  SL004: 'limit',
  SL011: 'busy',
  SL012: 'ended',
};

export const codeOf = (error: unknown): string => {
  const { code } = error as { code?: unknown };
  if (typeof code !== 'string') throw error;
  return code;
};

export class World {
  readonly #lane: Lane;
  #histories = 0;
  #slots = 0;
  /** What was done, in words. */
  history: string[] = [];
  /** Every claim that a buyer was told of. */
  told: Told[] = [];
  /** Every claim that a buyer was told is released. */
  released = new Set<string>();
  /** Failures that were acknowledged, by message. */
  failures = new Map<number, number>();

  constructor(lane: Lane) {
    this.#lane = lane;
  }

  async reset(): Promise<void> {
    this.history = [];
    this.told = [];
    this.released = new Set();
    this.failures = new Map();
    const isSweep = ++this.#histories % HISTORIES_PER_SWEEP === 0;
    await Promise.all([
      this.#lane.db1.run(isSweep ? SWEEP : CLEAN),
      this.#lane.db2.run(
        isSweep
          ? 'truncate public.confirmed_tickets, public.voided_tickets'
          : `delete from public.confirmed_tickets where ${WITHOUT_A_TRACE}; delete from public.voided_tickets`,
      ),
    ]);
  }

  doing(text: string): void {
    this.history.push(text);
  }

  got(text: string): void {
    this.history.push(`${this.history.pop() ?? ''} → ${text}`);
  }

  async addPool({ id, maxPerUser, hasHold, validates, maxRetries }: Pool): Promise<void> {
    // Nothing here ever calls the address.
    await this.#lane.db1.rows(
      `insert into public.engine_config (pool_id, max_per_user, hold_sec, max_retries, validation_webhook_url)
       values ($1, $2, $3, $4, $5)`,
      [id, maxPerUser, hasHold ? HOLD_SEC : null, maxRetries, validates ? 'https://example.org/' : null],
    );
  }

  /** Ids of our own, so that slots have names before the database knows them. */
  async addSlots(pool: Pool, count: number): Promise<string[]> {
    const ids = Array.from({ length: count }, () => {
      const number = (++this.#slots).toString(16).padStart(12, '0');
      return `00000000-0000-7000-8000-${number}`;
    });
    await this.#lane.db1.rows(
      'insert into public.inventory_slots (id, pool_id) select unnest($1::uuid[]), $2',
      [ids, pool.id],
    );
    return ids;
  }

  async openPool(pool: Pool, isOpen: boolean): Promise<void> {
    await this.#lane.db1.rows('update public.engine_config set is_active = $2 where pool_id = $1', [
      pool.id,
      isOpen,
    ]);
  }

  async claimOne({ pool, user, request }: Request): Promise<ClaimAnswer> {
    try {
      const [row] = await this.#lane.db1.rows<{ slot: string | null }>(
        'select public.claim_resource_and_queue($1, $2, $3) as slot',
        [pool.id, user, request],
      );
      const slotId = row?.slot ?? null;
      // The function answers with the slot alone, so a new claim and an old one look alike.
      return { outcome: slotId === null ? 'sold_out' : 'sold', claimId: null, slotId };
    } catch (error) {
      return { outcome: SINGLE_OUTCOMES[codeOf(error)] ?? codeOf(error), claimId: null, slotId: null };
    }
  }

  async claimBatch(requests: readonly Request[]): Promise<ClaimAnswer[]> {
    return this.#lane.db1.rows<ClaimAnswer>(
      `select outcome || case when state in ('released', 'expired', 'refused', 'discarded') then ' ' || state else '' end
         as outcome, claim_id as "claimId", resource_id as "slotId"
       from public.claim_batch($1, $2, $3) order by ordinal`,
      [
        requests.map(({ pool }) => pool.id),
        requests.map(({ user }) => user),
        requests.map(({ request }) => request),
      ],
    );
  }

  /** The claims on these slots that are on their way. */
  async idsOf(slotIds: readonly string[]): Promise<{ claimId: string; slotId: string; msgId: number }[]> {
    return this.#lane.db1.rows(
      `select claim_id as "claimId", slot_id as "slotId", msg_id::float8 as "msgId" from public.claims
       where slot_id = any ($1) and freed_at is null`,
      [slotIds],
    );
  }

  /** Claims of this user that are not among the known ones. */
  async newClaims(
    pool: Pool,
    user: string,
    known: readonly Claim[],
  ): Promise<{ claimId: string; slotId: string; msgId: number }[]> {
    return this.#lane.db1.rows(
      `select claim_id as "claimId", slot_id as "slotId", msg_id::float8 as "msgId" from public.claims
       where pool_id = $1 and user_id = $2 and claim_id <> all ($3)`,
      [pool.id, user, known.map(({ id }) => id)],
    );
  }

  /** By its owner, or by an operator where no user is given. */
  async release(claim: Claim, user: string | null): Promise<string> {
    const name = user === null ? 'release_claim_as_operator' : 'release_own_claim';
    try {
      const [row] = await this.#lane.db1.rows<{ state: string }>(
        `select case when ending then 'ending' else state end as state from public.${name}($1, $2)`,
        [claim.id, user ?? 'olga'],
      );
      if (row?.state === 'released') this.released.add(claim.id);
      return row?.state ?? 'no row';
    } catch (error) {
      return codeOf(error);
    }
  }

  async holdRunsOut(claim: Claim): Promise<void> {
    await this.#lane.db1.rows(
      `update public.claims set hold_until = now() - interval '1 second' where claim_id = $1 and hold_until is not null`,
      [claim.id],
    );
  }

  expireHolds = (): Promise<number> => this.#job('select public.expire_holds() as count');
  reap = (): Promise<number> => this.#job(`select public.reap_orphaned_slots('0 seconds') as count`);

  /** The claims that are to end now, taken without a lease: the next call gets them again. */
  async takeEnds(): Promise<string[]> {
    await this.#lane.db1.rows('select intake.ensure_inventory()');
    const rows = await this.#lane.db1.rows<{ claim_id: string }>('select * from public.take_ends(100, 0)');
    return rows.map(({ claim_id }) => claim_id);
  }

  async voidTickets(claims: readonly Claim[]): Promise<Map<string, string>> {
    const rows = await this.#lane.db2.rows<{ claim_id: string; outcome: string }>(
      'select claim_id, outcome from public.void_tickets($1)',
      [JSON.stringify(claims.map((claim) => ({ ...payloadOf(claim), cause: claim.endAs })))],
    );
    return new Map(rows.map(({ claim_id, outcome }) => [claim_id, outcome]));
  }

  async finishEnds(ends: readonly Heard[]): Promise<number> {
    const args = [ends.map(({ claim }) => claim.id), ends.map(({ outcome }) => outcome)];
    return this.#count('select public.finish_ends($1, $2) as count', args);
  }

  async #count(sql: string, args: unknown[] = []): Promise<number> {
    const [row] = await this.#lane.db1.rows<{ count: number }>(sql, args);
    return row?.count ?? Number.NaN;
  }

  async leaseEnds(messages: readonly Message[]): Promise<void> {
    await this.#lane.db1.rows(
      `update pgmq.q_intake_queue set vt = clock_timestamp() - interval '1 second' where msg_id = any ($1)`,
      [messages.map(({ id }) => id)],
    );
  }

  /** As much of the lane of each pool that is not paused. */
  async take(limit: number, paused: readonly Pool[]): Promise<Taken[]> {
    return this.#lane.db1.rows<Taken>(
      `select ${TAKEN}
       from (select array(select lane from public.engine_config where pool_id <> all ($2)) as lanes) a
       cross join lateral public.bridge_take(a.lanes, array_fill($1::int, array[cardinality(a.lanes)]), ${LEASE_SEC})`,
      [limit, paused.map(({ id }) => id)],
    );
  }

  async takeSuspect(): Promise<Taken[]> {
    return this.#lane.db1.rows<Taken>(
      `select ${TAKEN} from public.bridge_take_suspect(array(select lane from public.engine_config), ${LEASE_SEC})`,
    );
  }

  async extend(deliveries: readonly Delivery[]): Promise<number[]> {
    const rows = await this.#lane.db1.rows<{ id: number }>(
      `select id::float8 from public.bridge_extend($1, $2, ${LEASE_SEC}) as id`,
      [deliveries.map(({ message }) => message.id), deliveries.map(({ readCt }) => readCt)],
    );
    return rows.map(({ id }) => id);
  }

  async finish(finishes: readonly Finish[]): Promise<Map<number, string>> {
    const rows = await this.#lane.db1.rows<{ id: number; outcome: string }>(
      'select msg_id::float8 as id, outcome from public.bridge_finish($1, $2, $3, $4, $5)',
      [
        finishes.map(({ delivery }) => delivery.message.id),
        finishes.map(({ delivery }) => delivery.readCt),
        finishes.map(({ verdict }) => verdict),
        finishes.map(({ reason }) => reason),
        finishes.map(({ delayMs }) => delayMs),
      ],
    );
    for (const { id, outcome } of rows)
      if (outcome === 'retry') this.failures.set(id, (this.failures.get(id) ?? 0) + 1);
    return new Map(rows.map(({ id, outcome }) => [id, outcome]));
  }

  /** The way of workers that know no finish. */
  async routeToDeadLetters({ message, readCt }: Delivery): Promise<number | null> {
    const [row] = await this.#lane.db1.rows<{ id: number | null }>(
      'select public.intake_route_to_dlq($1, $2, $3)::int as id',
      [message.id, { ...payloadOf(message.claim), seen: message.seen, tried: message.tried }, readCt],
    );
    return row?.id ?? null;
  }

  /** The dead letters of these messages. */
  async lettersOf(messages: readonly Message[]): Promise<{ id: number; msgId: number }[]> {
    return this.#lane.db1.rows(
      `select msg_id::float8 as id, (message ->> 'original_msg_id')::float8 as "msgId" from pgmq.q_intake_dlq
       where (message ->> 'original_msg_id')::bigint = any ($1)`,
      [messages.map(({ id }) => id)],
    );
  }

  async finalize(claims: readonly Claim[]): Promise<string[]> {
    const rows = await this.#lane.db2.rows<{ outcome: string }>(
      'select outcome from public.finalize_batch($1) order by ordinal',
      [JSON.stringify(claims.map(payloadOf))],
    );
    return rows.map(({ outcome }) => outcome);
  }

  /** As old callers do: without a claim. */
  async sellAtLedger(slot: Slot, user: string): Promise<string> {
    try {
      await this.#lane.db2.rows('select public.finalize_transaction($1)', [
        { resource_id: slot.id, pool_id: slot.pool.id, user_id: user },
      ]);
      return 'done';
    } catch (error) {
      return codeOf(error);
    }
  }

  async ticketsOf(claims: readonly Claim[]): Promise<string[]> {
    const rows = await this.#lane.db2.rows<{ ordinal: number; outcome: string }>(
      'select ordinal, outcome from public.tickets_of($1)',
      [JSON.stringify(claims.map(payloadOf))],
    );
    return claims.map((_, at) => rows.find(({ ordinal }) => ordinal === at + 1)?.outcome ?? 'none');
  }

  async operate(verb: 'replay' | 'discard', ids: readonly number[], isDryRun: boolean) {
    const rows = await this.#lane.db1.rows<{ id: number; outcome: string }>(
      `select msg_id::float8 as id, outcome from public.${verb}_dead_letters($1, '${ACTOR}', null, $2)`,
      [ids, isDryRun],
    );
    return new Map(rows.map(({ id, outcome }) => [id, outcome]));
  }

  /** A person reserves a slot in psql and walks away. */
  async orphan(slot: Slot): Promise<void> {
    await this.#lane.db1.rows(
      `update public.inventory_slots set status = 'RESERVED', locked_by = 'hand', locked_at = now() - interval '1 hour'
       where id = $1`,
      [slot.id],
    );
  }

  loseCache = (): Promise<void> => this.#lane.db1.run(LOSE_CACHE);

  async poolStatus(pool: Pool) {
    const [row] = await this.#lane.db1.rows<{ status: string; capacity: number; available: number }>(
      'select status, capacity::int, available::int from public.pool_status($1)',
      [pool.id],
    );
    return row;
  }

  differences() {
    const { db1, db2 } = this.#lane;
    const ports: ReconcilePorts = {
      slots: (after, limit) =>
        db1.rows<SlotRow>('select * from public.reconcile_claims($1, $2)', [after, limit]),
      slotsById: (ids) =>
        db1.rows<SlotRow>('select * from public.reconcile_claims(null, $2, $1)', [ids, ids.length]),
      tickets: (after, limit) =>
        db2.rows<TicketRow>('select * from public.tickets_page($1, $2)', [after, limit]),
      ticketsById: (ids) =>
        db2.rows<TicketRow>('select * from public.tickets_page(null, $2, $1)', [ids, ids.length]),
      endedMessages: [
        (after, limit) => db1.rows('select * from public.reconcile_messages($1, $2)', [after, limit]),
      ],
      voided: (ids) => db2.rows<VoidedRow>('select * from public.voided_claims($1)', [ids]),
      onProgress: () => undefined,
    };
    return findDifferences(ports);
  }

  async fix(slotId: string, kind: string, ticket: unknown): Promise<string> {
    const [row] = await this.#lane.db1.rows<{ outcome: string }>(
      `select public.reconcile_fix($1, $2, '${ACTOR}', $3) as outcome`,
      [slotId, kind, ticket],
    );
    return row?.outcome ?? 'no row';
  }

  /** Jobs leave a lost pool out; the one that rebuilds them runs before. */
  async #job(sql: string): Promise<number> {
    await this.#lane.db1.rows('select intake.ensure_inventory()');
    return this.#count(sql);
  }

  /** Everything both databases hold. A lost cache is brought back first, as any look would. */
  async look(): Promise<{ intake: IntakeState; tickets: TicketState[]; tombstones: string[] }> {
    await this.#lane.db1.rows('select intake.ensure_inventory()');
    const [[one], [other]] = await Promise.all([
      this.#lane.db1.rows<{ state: IntakeState }>(INTAKE_STATE),
      this.#lane.db2.rows<{ tickets: TicketState[]; tombstones: string[] }>(LEDGER_STATE),
    ]);
    if (one === undefined || other === undefined) throw new Error('the databases say nothing');
    return { intake: one.state, ...other };
  }
}

function payloadOf({ id, slot, user }: Claim) {
  return { claim_id: id, pool_id: slot.pool.id, resource_id: slot.id, user_id: user, state: 'queued' };
}
