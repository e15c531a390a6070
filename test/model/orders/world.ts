// Both databases of one lane and Stripe in memory, by the calls that doors, workers, providers and operators make. After each
// of them the promises are held against what is there.

import type { CallFunction } from '#core/call_function.ts';
import { queryFor } from '../../../src/db/statement.ts';
import type { Lane, Side } from '../lanes.ts';
import { Violation } from '../violation.ts';
import { Actor, type Ask, type Body, type Callee, type Fate } from './actors.ts';
import { checkAlways, checkAtRest, type Scene } from './promises.ts';
import { ACTOR, AUTO_POOL, addPools, NO_RULES, PAY_POOL, type Rules, UNIT_PRICE } from './rules.ts';
import { keyOf, type State, seatsOf } from './state.ts';
import { CLEAN_INTAKE, CLEAN_LEDGER, INTAKE, LEDGER, SWEEP_INTAKE, SWEEP_LEDGER } from './statements.ts';
import { type Delivery, Stripe } from './stripe.ts';

/** After so many histories of a lane their dead rows and credits cost more than a TRUNCATE. */
const HISTORIES_PER_SWEEP = 50;
/** Calls of one process. What takes more goes round in circles. */
const STEPS_MAX = 200;

export const codeOf = (error: unknown): string => {
  const { code } = error as { code?: unknown };
  if (typeof code !== 'string') throw error;
  return code;
};

/** Of all lanes: the ledger keeps its credits, and no history may meet another's. */
let histories = 0;

export class World {
  readonly #lane: Lane;
  #slots = 0;
  #requests = 0;
  #histories = 0;
  #expiredSecAgo: number | null = null;
  #isUnchanged = false;
  history: string[] = [];
  stripe = new Stripe('', 0, () => false);
  state: State = EMPTY;
  rules: Rules = NO_RULES;
  /** Processes that have not ended. */
  actors: Actor[] = [];
  /** Calls to Stripe that are still on their way, their callers long gone. */
  late: { what: string; make: () => Promise<unknown> }[] = [];
  #freedInTime = new Set<string>();
  #ended = new Set<string>();
  #takenBack = new Map<string, 'refund' | 'forfeit'>();
  #skipped = new Set<string>();
  /** Names for people: orders and claims in the order in which they came. */
  readonly #names = new Map<string, string>();

  constructor(lane: Lane) {
    this.#lane = lane;
  }

  get breaks(): ReadonlySet<string> {
    return this.#lane.breaks;
  }

  /** Stands in the ids of this history, and of none before it. Kept: other lanes begin histories meanwhile. */
  run = '';

  async reset(rules: Rules): Promise<void> {
    this.history = [];
    this.run = `o${++histories}x`;
    this.rules = rules;
    this.stripe = new Stripe(this.run, rules.skewSec, (kind) => this.breaks.has(`no-${kind}-key`));
    this.leave();
    this.late = [];
    this.#freedInTime = new Set();
    this.#ended = new Set();
    this.#takenBack = new Map();
    this.#skipped = new Set();
    this.#names.clear();
    this.#expiredSecAgo = null;
    const { db1, db2 } = this.#lane;
    const isSweep = ++this.#histories % HISTORIES_PER_SWEEP === 0;
    await Promise.all([
      db1.run(isSweep ? SWEEP_INTAKE : CLEAN_INTAKE),
      db2.run(isSweep ? SWEEP_LEDGER : CLEAN_LEDGER),
    ]);
    await addPools(db1, rules);
    await this.#addSlots(PAY_POOL, rules.slots);
    await this.#addSlots(AUTO_POOL, 1);
    await this.look();
  }

  async #addSlots(pool: string, count: number): Promise<void> {
    const ids = Array.from(
      { length: count },
      () => `00000000-0000-7000-9000-${(++this.#slots).toString(16).padStart(12, '0')}`,
    );
    await this.#lane.db1.rows(
      'insert into public.inventory_slots (id, pool_id) select unnest($1::uuid[]), $2',
      [ids, pool],
    );
    for (const id of ids) this.#names.set(id, `${pool}-${this.#names.size + 1}`);
  }

  doing(text: string): void {
    this.history.push(text);
  }

  got(text: string): void {
    this.history.push(`${this.history.pop() ?? ''} → ${text}`);
  }

  /** What people call it; what has no name yet gets one. */
  name(id: string, kind: string): string {
    const known = this.#names.get(id);
    if (known !== undefined) return known;
    const name = `${kind}${[...this.#names.values()].filter((one) => one.startsWith(kind)).length + 1}`;
    this.#names.set(id, name);
    return name;
  }

  /** Ids in what a promise says are no help to people. */
  #named(text: string): string {
    return text.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (id) => this.#names.get(id) ?? id);
  }

  side(to: 'db1' | 'db2'): Side {
    return this.#lane[to];
  }

  /** A SQL function by named arguments, as workers call it. */
  call(to: 'db1' | 'db2', schema = 'public'): CallFunction {
    return async <Row>(name: string, args: Record<string, unknown>) => {
      const { text, values = [] } = queryFor(`${schema}.${name}`, args);
      const rows = (await this.#lane[to].rows(text, values)) as Row[];
      // A take that finds nothing changes nothing.
      this.#isUnchanged = name.includes('take') && rows.length === 0;
      return rows;
    };
  }

  /** Reads what the call may have changed, and holds the promises against it. */
  async look(side?: Callee): Promise<void> {
    if (side === 'stripe') return this.#check(checkAlways);
    const [intake, ledger] = await Promise.all([
      side === 'db2' ? this.state.intake : this.#read<State['intake']>('db1', INTAKE),
      side === 'db1' ? this.state.ledger : this.#read<State['ledger']>('db2', LEDGER, [`%${this.run}%`]),
    ]);
    this.state = { intake, ledger };
    for (const { id } of intake.orders) this.name(id, 'order ');
    for (const { id } of intake.claims) this.name(id, 'claim ');
    this.#check(checkAlways);
    for (const { id, isFreed } of intake.claims) if (isFreed) this.#ended.add(id);
  }

  async #read<Part>(side: 'db1' | 'db2', statement: string, args?: unknown[]): Promise<Part> {
    const [row] = await this.#lane[side].rows<{ state: Part }>(statement, args);
    if (row === undefined) throw new Error('the database says nothing');
    return row.state;
  }

  #check(promises: (scene: Scene) => void): void {
    const { unitPrice, payPool } = { unitPrice: UNIT_PRICE, payPool: PAY_POOL };
    try {
      promises({
        state: this.state,
        stripe: this.stripe,
        rules: { unitPrice, payPool, maxPerUser: this.rules.maxPerUser },
        freedInTime: this.#freedInTime,
        expiredSecAgo: this.#expiredSecAgo,
        ended: this.#ended,
        takenBack: this.#takenBack,
        skipped: this.#skipped,
      });
    } catch (error) {
      throw error instanceof Violation ? new Violation(error.promise, this.#named(error.detail)) : error;
    }
  }

  async checkAtRest(): Promise<void> {
    await this.look();
    this.#check(checkAtRest);
  }

  // ---- time

  async advance(seconds: number): Promise<void> {
    await Promise.all(
      (['db1', 'db2'] as const).map((side) =>
        this.#lane[side].rows('select model.advance($1::int)', [seconds]),
      ),
    );
    this.stripe.advance(seconds);
    if (this.#expiredSecAgo !== null) this.#expiredSecAgo += seconds;
    await this.look();
  }

  /** What the worker does every second. An order may be freed before its grace is over only when no session can take money. */
  async expireHolds(): Promise<number> {
    const before = this.state;
    const [row] = await this.call('db1')<{ expire_holds: number }>('expire_holds', {});
    this.#expiredSecAgo = 0;
    await this.look('db1');
    for (const order of before.intake.orders) {
      const wasHeld = seatsOf(before, order.id).every(({ state }) => state === 'held');
      const isFreed = seatsOf(this.state, order.id).every((claim) => claim.isFreed);
      if (wasHeld && isFreed && (order.graceSec ?? 0) > 0) this.#freeInTime(order.id);
    }
    this.#check(checkAlways);
    return row?.expire_holds ?? 0;
  }

  #freeInTime(order: string): void {
    this.#freedInTime.add(order);
    const decided = new Set(this.state.intake.decisions.map(({ key }) => key));
    for (const payment of this.stripe.payments)
      if (payment.order === order && payment.session && payment.isPaid && !payment.isDelayed)
        if (!decided.has(keyOf(payment)))
          throw new Violation('I16', this.#named(`order ${order} was freed although ${payment.id} was paid`));
  }

  // ---- buyers

  /** One request; what it was told. */
  async claim(pool: string, user: string, quantity: number): Promise<string> {
    const [row] = await this.#lane.db1.rows<{ outcome: string; claim_id: string | null }>(
      `select outcome, claim_id from public.claim_batch(array[$1], array[$2], array[$3], p_verified => array[true],
         p_quantities => array[$4::int])`,
      [pool, user, `${this.run}r${++this.#requests}`, quantity],
    );
    await this.look('db1');
    return row?.claim_id == null ? (row?.outcome ?? 'no row') : `${row.outcome} ${this.#named(row.claim_id)}`;
  }

  async release(order: string, user: string): Promise<string> {
    try {
      await this.#lane.db1.rows('select state from public.release_own_claim($1, $2)', [order, user]);
    } catch (error) {
      return codeOf(error);
    } finally {
      await this.look('db1');
    }
    return 'done';
  }

  // ---- Stripe

  /** A session of an order whose seats are free again, in time, must not take money. */
  sessionPaid(order: string): void {
    if (this.#freedInTime.has(order))
      throw new Violation(
        'I16',
        this.#named(`a session took money for order ${order} after its seats were free`),
      );
  }

  /** One delivery: recorded and processed, as an endpoint does. True where Stripe is told that all is well. */
  async deliver({ event, atSec, endpoint }: Delivery): Promise<string> {
    const [recorded] = await this.#lane.db2.rows<{ id: string }>(
      `select r.id from webhook.record_events(
         array(select e.webhook_id from public.webhook_endpoints e where e.name = $1),
         array[$2], array[$3], array[to_timestamp($4)], array[$5], null, null, array[$5], null, null, null) r`,
      [endpoint, event.id, event.type, atSec, JSON.stringify(event)],
    );
    const [row] = await this.#lane.db2.rows<{ outcome: string }>(
      'select outcome from webhook.process_event($1)',
      [recorded?.id],
    );
    await this.look('db2');
    return row?.outcome ?? 'no row';
  }

  // ---- processes

  async start(name: string, body: Body): Promise<Actor> {
    const actor = await Actor.start(name, body);
    if (actor.next !== undefined) this.actors.push(actor);
    return actor;
  }

  /** The next call of a process happens, in this way. */
  async step(actor: Actor, fate: Fate): Promise<void> {
    const { next } = actor;
    if (next === undefined) return;
    // Only a request to Stripe can come long after its caller has given up: a database would roll it back.
    const real = fate === 'late' && next.to !== 'stripe' ? 'lost' : fate;
    this.history.push(`  ${actor.name}: ${next.what}${real === 'done' ? '' : ` (${real})`}`);
    this.#isUnchanged = false;
    const late = await actor.step(real);
    if (late !== undefined) this.late.push({ what: next.what, make: late });
    if (actor.next === undefined) this.actors = this.actors.filter((one) => one !== actor);
    if (!this.#isUnchanged) await this.look(next.to);
  }

  /** So many calls of a process, and what becomes of the next. */
  async go(actor: Actor, steps: number, fate: Fate): Promise<void> {
    for (let done = 0; done < steps && actor.next !== undefined; done++) await this.step(actor, 'done');
    if (actor.next !== undefined) await this.step(actor, fate);
  }

  /** Runs a process to its end, undisturbed. */
  async finish(actor: Actor): Promise<unknown> {
    for (let steps = 0; actor.next !== undefined; steps++) {
      if (steps === STEPS_MAX) throw new Violation('I10', `${actor.name} finds no end`);
      await this.step(actor, 'done');
    }
    return actor.result;
  }

  /** Processes that still wait are gone. Left waiting, each would keep its timers, and these the whole run. */
  leave(): void {
    for (const actor of this.actors.splice(0)) actor.die();
  }

  async arrive(at: number): Promise<string> {
    const [call] = this.late.splice(at, 1);
    try {
      await call?.make();
    } catch (error) {
      return String(error);
    }
    this.#check(checkAlways);
    return 'arrived';
  }

  /** For a control alone: the row of a checkout whose session is known before it. */
  async writeCheckout({ p_order_id, p_n }: Record<string, unknown>): Promise<void> {
    await this.#lane.db1.rows(
      `insert into public.checkouts (order_id, n, idempotency_key, tenant, livemode, params, next_attempt_at)
       select o.order_id, $2::int, 'sluice:checkout:' || o.order_id || ':' || $2, o.tenant, o.livemode,
         intake.checkout_params(o, $2::int, 'https://tickets.example'), o.hold_until
       from public.orders o where o.order_id = $1 and o.hold_until is not null on conflict do nothing`,
      [p_order_id, p_n],
    );
  }

  // ---- operators

  async requestVoid(claims: readonly string[], isRefund: boolean): Promise<void> {
    await this.#lane.db2.rows('select public.request_void($1, $2, $3, $4)', [claims, isRefund, ACTOR, null]);
    // A void with a refund corrects one without, whichever is asked for first.
    for (const claim of claims)
      if (this.#takenBack.get(claim) !== 'refund')
        this.#takenBack.set(claim, isRefund ? 'refund' : 'forfeit');
    await this.look('db2');
  }

  async decideRefund(id: string, action: 'send' | 'skip'): Promise<string> {
    const [row] = await this.call('db2')<{ outcome: string }>('decide_refunds', {
      ...{ p_ids: [id], p_action: action, p_actor: ACTOR, p_reason: null, p_dry_run: false },
    });
    if (row?.outcome === 'skipped') this.#skipped.add(id);
    await this.look('db2');
    return row?.outcome ?? 'no row';
  }

  /** A repair of `reconcile --fix`, whenever what it knows was read. */
  async repair(slot: string, kind: string, ticket: object): Promise<void> {
    this.doing(`a repair of ${this.name(slot, 'slot ')}: ${kind}`);
    const [row] = await this.#lane.db1.rows<{ outcome: string }>(
      `select public.reconcile_fix($1, $2, '${ACTOR}', $3) as outcome`,
      [slot, kind, ticket],
    );
    this.got(row?.outcome ?? 'no row');
    await this.look('db1');
  }

  async operate(verb: 'replay' | 'discard', letter: number): Promise<string> {
    const [row] = await this.#lane.db1.rows<{ outcome: string; claim_id?: string }>(
      `select * from public.${verb}_dead_letters(array[$1::bigint], $2, null, false)`,
      [letter, ACTOR],
    );
    await this.look('db1');
    // What was paid for ends by a void, and its buyer gets the money back.
    if (verb === 'discard' && row?.outcome === 'paid') await this.requestVoid([row.claim_id ?? ''], true);
    return row?.outcome ?? 'no row';
  }
}

const EMPTY: State = {
  intake: { slots: [], claims: [], orders: [], decisions: [], checkouts: [], messages: [], letters: [] },
  ledger: { tickets: [], voided: [], outbox: [], refunds: [], payments: [], credits: [], deadEvents: [] },
};

export type { Ask };
