// The real ledger of one lane, by the calls that doors, workers and operators make.

import type { Lane, Side } from '../lanes.ts';
import type { Event, Lease, Mood, Outcome, Status, Template } from './model.ts';
import { STATE, SWEEP } from './statements.ts';

/** After so many histories their rows cost more than a TRUNCATE. */
const HISTORIES_PER_SWEEP = 100;

const ERRCODES: Record<Mood, string | null> = {
  well: null,
  failed: 'P0001',
  dead_letter: 'SL030',
  later: 'SL034',
  outage: '57P01',
  again: '55P03',
};

export type Delivered = { template: Template; isForged: boolean };
export type Recorded = { id: string; outcome: string; status: Status };
export type Taken = { id: string; token: string; attempts: number; takeovers: number };
export type State = {
  events: {
    eventId: string;
    status: Status;
    attempts: number;
    takeovers: number;
    isLeased: boolean;
    isDue: boolean;
    effects: number;
  }[];
  payments: { payment: string; state: string; refunded: number }[];
  credits: { payment: string; kind: string; amount: number; key: string; user: string }[];
  alarms: number;
  audit: string[];
};

export class World {
  readonly #db: Side;
  #runs = 0;
  /** A history that failed leaves work behind, which the next one would be given. */
  #isDirty = true;
  history: string[] = [];

  constructor(lane: Lane) {
    this.#db = lane.db2;
  }

  /** Stands in all that this history makes, and in nothing that another one makes. */
  get run(): string {
    return `h${this.#runs}x`;
  }

  async reset(): Promise<void> {
    this.history = [];
    this.#runs++;
    if (this.#isDirty || this.#runs % HISTORIES_PER_SWEEP === 0) await this.#db.run(SWEEP);
    this.#isDirty = true;
    await this.setMood('well');
    await this.#db.rows(`select set_config('webhook.claims', '', false)`);
  }

  /** The history has ended well; what waits for a payment that never came must not meet the next one. */
  async settle(): Promise<void> {
    await this.#db.rows(
      `delete from public.webhook_events where status in ('pending', 'processing', 'failed')`,
    );
    this.#isDirty = false;
  }

  doing(text: string): void {
    this.history.push(text);
  }

  got(text: string): void {
    this.history.push(`${this.history.pop() ?? ''} → ${text}`);
  }

  async setMood(mood: Mood): Promise<void> {
    await this.#db.rows('update app.mood set errcode = $1', [ERRCODES[mood]]);
  }

  deliver(deliveries: readonly Delivered[]): Promise<Recorded[]> {
    const of = <Value>(read: (delivery: Delivered) => Value) => deliveries.map(read);
    return this.#db.rows<Recorded>(
      `select r.id, r.outcome, r.status from webhook.record_events(
         array(select e.webhook_id from unnest($1::text[]) with ordinality n (name, at)
           join public.webhook_endpoints e on e.name = n.name order by n.at),
         $2, $3, $4::timestamptz[], $5, null, null, $6, null, null, null) r order by r.ordinal`,
      [
        of(({ template }) => (template.notice === null ? 'shop' : 'stripe')),
        of(({ template }) => template.eventId),
        of(({ template }) => template.notice?.type ?? 'act'),
        of(({ template }) =>
          new Date(Date.UTC(2026, 2, 1, 12, 0, template.notice?.second ?? 0)).toISOString(),
        ),
        of(({ template }) => JSON.stringify({ data: { object: template.notice?.object ?? {} } })),
        of(({ isForged }) => (isForged ? 'another body' : 'its body')),
      ],
    );
  }

  take(limit: number): Promise<Taken[]> {
    return this.#db.rows<Taken>(
      `select t.id, t.lease_token as token, t.attempts, t.takeovers
       from (select array_agg(lane) as lanes, array_agg($1::int) as wanted from webhook.event_lanes()) l
       cross join lateral webhook.take_events(l.lanes, l.wanted) t`,
      [limit],
    );
  }

  takeSuspect(): Promise<Taken[]> {
    return this.#db.rows<Taken>(
      `select id, lease_token as token, attempts, takeovers
       from webhook.take_suspect(array(select lane from webhook.event_lanes()))`,
    );
  }

  async claimNext(): Promise<string | undefined> {
    const [row] = await this.#db.rows<{ id: string }>('select id from webhook.claim_next_event()');
    return row?.id;
  }

  async process(leases: readonly Lease[]): Promise<Map<string, string>> {
    const rows = await this.#db.rows<{ id: string; outcome: string }>(
      'select id, outcome from webhook.process_events($1, $2)',
      [leases.map(({ event }) => event.id), leases.map(({ text }) => text)],
    );
    await this.#hide(rows);
    return new Map(rows.map(({ id, outcome }) => [id, outcome]));
  }

  async processNow(event: Event): Promise<string> {
    const [row] = await this.#db.rows<{ outcome: string }>('select outcome from webhook.process_event($1)', [
      event.id,
    ]);
    const outcome = row?.outcome ?? 'no row';
    await this.#hide([{ id: event.id, outcome }]);
    return outcome;
  }

  /** A worker's own handler: whether the lease is held, its effect and the mark, in one transaction. */
  async finish({ event, text }: Lease, outcome: Outcome): Promise<string> {
    return this.#inTransaction(async () => {
      const [held] = await this.#db.rows<{ held: boolean }>('select webhook.hold_event($1, $2) as held', [
        event.id,
        text,
      ]);
      if (held?.held && outcome === 'success')
        await this.#db.rows('insert into app.effects values ($1)', [event.eventId]);
      const [row] = await this.#db.rows<{ outcome: string }>(
        'select webhook.finish_event($1, $2, $3, $4) as outcome',
        [event.id, text, outcome, outcome === 'success' || outcome === 'pending' ? null : 'planted'],
      );
      const answer = row?.outcome ?? 'no row';
      await this.#hide([{ id: event.id, outcome: answer }]);
      return answer;
    });
  }

  /** A worker that knows no tokens: its effect and the mark in one transaction. */
  async markResult(event: Event, status: 'success' | 'failed' | 'pending'): Promise<string> {
    try {
      return await this.#inTransaction(async () => {
        if (status === 'success') await this.#db.rows('insert into app.effects values ($1)', [event.eventId]);
        await this.#db.rows('select webhook.mark_event_result($1, $2, $3)', [
          event.id,
          status,
          status === 'failed' ? 'planted' : null,
        ]);
        // Of the last attempt a failure makes a dead letter, which is nothing to hide.
        await this.#hide([{ id: event.id, outcome: status }]);
        return 'marked';
      });
    } catch (error) {
      const { code } = error as { code?: unknown };
      if (code !== 'SL033') throw error;
      return code;
    }
  }

  async #inTransaction<Result>(work: () => Promise<Result>): Promise<Result> {
    await this.#db.run('begin');
    try {
      const result = await work();
      await this.#db.run('commit');
      return result;
    } catch (error) {
      await this.#db.run('rollback');
      throw error;
    }
  }

  /** The shortest wait is half a second: on a slow machine it would run out by itself, and no history says so. */
  async #hide(ended: readonly { id: string; outcome: string }[]): Promise<void> {
    const failed = ended.filter(({ outcome }) => outcome === 'failed');
    if (failed.length === 0) return;
    await this.#db.rows(
      `update public.webhook_events set next_attempt_at = now() + interval '1 hour'
       where id = any ($1) and status = 'failed'`,
      [failed.map(({ id }) => id)],
    );
  }

  async timeComes(events: readonly Event[]): Promise<void> {
    await this.#db.rows(
      `update public.webhook_events set next_attempt_at = now(),
         lease_until = case when lease_until is null then null else now() end
       where id = any ($1)`,
      [events.map(({ id }) => id)],
    );
  }

  async extend(leases: readonly Lease[]): Promise<string[]> {
    const rows = await this.#db.rows<{ id: string }>('select id from webhook.extend_leases($1, $2) as id', [
      leases.map(({ event }) => event.id),
      leases.map(({ text }) => text),
    ]);
    return rows.map(({ id }) => id);
  }

  async operate(verb: 'replay' | 'skip', event: Event, isDryRun: boolean): Promise<string> {
    const [row] = await this.#db.rows<{ outcome: string }>(
      `select outcome from webhook.${verb}_events(array[$1::uuid], $2, null, $3)`,
      [event.id, this.run, isDryRun],
    );
    return row?.outcome ?? 'no row';
  }

  async look(): Promise<State> {
    const [row] = await this.#db.rows<{ state: State }>(STATE, [`%${this.run}%`, this.run]);
    if (row === undefined) throw new Error('the database says nothing');
    return row.state;
  }
}
