// The healthy one: a pool without hooks and an endpoint with a handler of its own, asked at a low, fixed pace whatever
// became of earlier requests. Each request is made once, and counts from the moment it was due.

import { createHmac } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import type { ClaimCall, EventCall, HealthyCall } from '../history.ts';
import { type Answer, ask } from './ask.ts';
import type { Traffic } from './traffic.ts';

export const HEALTHY_POOL = 'healthy';
export const HEALTHY_ENDPOINT = 'healthy';
/** Of claims, and as many of events: enough for a p99 within a window of twelve seconds. */
export const HEALTHY_PER_SEC = 15;

/** The handler of the healthy endpoint does what payments do everywhere, under a name and so in a lane of its own. */
export const HEALTHY_HANDLER = `
  create function public.chaos_healthy_effect(p_event public.webhook_events) returns text
  language sql set search_path = '' as 'select webhook.apply_payment(p_event)';
  insert into public.webhook_handlers (provider, event_type, webhook_id, kind, name)
  select 'stripe', 'payment_intent.succeeded', e.webhook_id, 'sql', 'public.chaos_healthy_effect'
  from public.webhook_endpoints e where e.name = '${HEALTHY_ENDPOINT}'`;

/** So long that what is only slow is not a failure: p99 judges it. */
const TIMEOUT_MS = 20_000;
const CLIENT = 'healthy';
const AMOUNT = 100;
const CURRENCY = 'eur';
/** One look at the ledger for all that wait: times of tickets and effects are that coarse. */
const LOOK_MS = 20;
const LOOK = `
  select t.claim_id::text as id from public.confirmed_tickets t where t.claim_id = any ($1::uuid[])
  union all
  select e.event_id from public.webhook_events e
  where e.provider = 'stripe' and e.event_id = any ($2) and e.status in ('success', 'skipped')`;

/** `subject` is what the ledger knows it by. */
type Asked = { call: HealthyCall; subject: string | undefined };

export class Healthy {
  readonly #traffic: Traffic;
  readonly #secret: string;
  readonly #db2Url: () => string;
  readonly #waiting = new Map<string, HealthyCall>();
  #asking = 0;

  constructor(traffic: Traffic, secret: string, db2Url: () => string) {
    this.#traffic = traffic;
    this.#secret = secret;
    this.#db2Url = db2Url;
  }

  async run(): Promise<void> {
    await Promise.all([this.#askOnAndOn(), this.#lookUntilAllIsSeen()]);
  }

  get #isDone(): boolean {
    return !this.#traffic.isOpen && this.#asking === 0 && this.#waiting.size === 0;
  }

  async #askOnAndOn(): Promise<void> {
    const startAt = this.#traffic.now();
    const all: Promise<void>[] = [];
    for (let turn = 0; this.#traffic.isOpen; turn++) {
      const at = startAt + (turn * 1_000) / HEALTHY_PER_SEC;
      const earlyMs = at - this.#traffic.now();
      if (earlyMs > 0) await pause(earlyMs);
      all.push(this.#note(this.#claim(turn, at)), this.#note(this.#deliver(turn, at)));
    }
    await Promise.all(all);
  }

  async #note(asking: Promise<Asked>): Promise<void> {
    this.#asking++;
    const { call, subject } = await asking;
    this.#asking--;
    if (call.answer === 'done' && subject !== undefined) this.#waiting.set(subject, call);
    else this.#write(call);
  }

  #write(call: HealthyCall): void {
    this.#traffic.journal.write(CLIENT, 'healthy', call);
  }

  async #claim(turn: number, at: number): Promise<Asked> {
    const requestId = `healthy-${turn}`;
    const userId = `user ${requestId}`;
    const body = JSON.stringify({ user_id: userId, request_id: requestId });
    const answer = await this.#post(turn, `/v1/pools/${HEALTHY_POOL}/claims`, {}, body);
    const isDone = answer?.status === 201;
    const claim: ClaimCall = {
      ...{
        requestId,
        poolId: HEALTHY_POOL,
        userId,
        startedAt: at,
        endedAt: this.#traffic.now(),
        attempts: 1,
      },
      answer: isDone ? 'claimed' : 'unknown',
      told: isDone ? [{ claimId: answer.json.claim_id, slotId: answer.json.resource_id }] : [],
    };
    this.#traffic.journal.write(CLIENT, 'claim', claim);
    const call = this.#callOf('claim', requestId, at, isDone, answer);
    return { call, subject: answer?.json?.claim_id };
  }

  async #deliver(turn: number, at: number): Promise<Asked> {
    const eventId = `evt_healthy_${turn}`;
    const intent = `pi_healthy_${turn}`;
    const userId = 'payer-healthy';
    const event: EventCall = {
      ...{ provider: 'stripe', endpoint: HEALTHY_ENDPOINT, eventId, deliveries: 1, acknowledgedAt: null },
      fact: { object: intent, kind: 'paid', userId, amount: AMOUNT, currency: CURRENCY },
    };
    this.#traffic.journal.write(CLIENT, 'event', event);
    const nowSec = Math.floor(Date.now() / 1_000);
    const paid = { id: intent, object: 'payment_intent', amount: AMOUNT, amount_received: AMOUNT };
    const object = { ...paid, currency: CURRENCY, metadata: { user_id: userId } };
    const type = 'payment_intent.succeeded';
    const body = JSON.stringify({ id: eventId, object: 'event', type, created: nowSec, data: { object } });
    const mac = createHmac('sha256', this.#secret).update(`${nowSec}.${body}`).digest('hex');
    const headers = { 'stripe-signature': `t=${nowSec},v1=${mac}` };
    const answer = await this.#post(turn, `/webhooks/${HEALTHY_ENDPOINT}`, headers, body);
    const isDone = answer !== undefined && answer.status >= 200 && answer.status < 300;
    if (isDone)
      this.#traffic.journal.write(CLIENT, 'event', { ...event, acknowledgedAt: this.#traffic.now() });
    return { call: this.#callOf('event', eventId, at, isDone, answer), subject: eventId };
  }

  #callOf(
    kind: HealthyCall['kind'],
    id: string,
    at: number,
    isDone: boolean,
    got: Answer | undefined,
  ): HealthyCall {
    const instead = got === undefined ? 'no answer' : `${got.status} ${got.json?.error?.code ?? ''}`.trim();
    const answer = isDone ? 'done' : instead;
    this.#traffic.count(`healthy ${kind}: ${answer}`);
    return { kind, id, at, answer, answeredAt: this.#traffic.now(), carriedAt: null };
  }

  #post(
    turn: number,
    path: string,
    headers: Record<string, string>,
    body: string,
  ): Promise<Answer | undefined> {
    const { ports, healthyAgent: agent } = this.#traffic;
    const port = ports[turn % ports.length] ?? 0;
    return ask({ port, path, method: 'POST', headers, body, agent, timeoutMs: TIMEOUT_MS });
  }

  /** Straight at the ledger's tables; while DB2 is away there is nothing to see. */
  async #lookUntilAllIsSeen(): Promise<void> {
    let client: pg.Client | undefined;
    while (!this.#isDone && !this.#traffic.hasGivenUp) {
      await pause(LOOK_MS);
      if (this.#waiting.size === 0) continue;
      try {
        client ??= await this.#connect();
        const { rows } = await client.query<{ id: string }>(LOOK, [
          this.#subjects('claim'),
          this.#subjects('event'),
        ]);
        for (const { id } of rows) this.#seen(id);
      } catch {
        await client?.end().catch(() => undefined);
        client = undefined;
      }
    }
    await client?.end().catch(() => undefined);
    for (const call of this.#waiting.values()) this.#write(call);
  }

  #subjects(kind: HealthyCall['kind']): string[] {
    return [...this.#waiting].filter(([, call]) => call.kind === kind).map(([subject]) => subject);
  }

  #seen(id: string): void {
    const call = this.#waiting.get(id);
    if (call === undefined) return;
    this.#waiting.delete(id);
    this.#write({ ...call, carriedAt: this.#traffic.now() });
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: this.#db2Url(), application_name: 'chaos healthy' });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  }
}
