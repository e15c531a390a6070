// Negative controls: one guard of the product is switched off in a lane, and the histories must notice. A control that
// finds nothing says that the histories could not have found that mistake in the product either.

import { readFileSync } from 'node:fs';
import { type Found, runBlocks, type Subject } from './engine.ts';
import type { Lane, Lanes } from './lanes.ts';
import { ORDER_CONTROLS } from './order_controls.ts';
import { change } from './patch.ts';
import { CLAIMS, EVENTS } from './subjects.ts';
import { Violation } from './violation.ts';

export type Control = {
  summary: string;
  subject: Subject;
  apply(lane: Lane): Promise<void>;
  /** A history made for this guard, for one that random histories may miss. Throws the violation. */
  direct?(lane: Lane): Promise<unknown>;
};
export type ControlResult = {
  name: string;
  seed: number;
  /** How many histories it took, or how many found nothing. */
  histories: number;
  violation: string | null;
  history: readonly string[];
  /** Random histories found nothing, and the one that was made for it did. */
  isDirected: boolean;
};

/** Several times what the shyest one needs. */
const HISTORIES_MAX = 2_000;
/** Of a control that has a history of its own. */
const HISTORIES_BEFORE_DIRECTED = 100;

const sqlFile = (name: string): string =>
  readFileSync(new URL(`./controls/${name}.sql`, import.meta.url), 'utf8');

/** What counts as a message that no worker has taken. */
const untaken = (condition: string): string =>
  `create or replace view intake.untaken_messages as select q.msg_id from pgmq.q_intake_queue q where ${condition}`;

export const CONTROLS: Record<string, Control> = {
  'fence-off': {
    summary: 'a finish does not ask whether its lease is still held',
    subject: CLAIMS,
    async apply({ db1 }) {
      await change(db1, 'intake.held_deliveries', 'and t.read_ct = q.read_ct', '');
      await change(
        db1,
        'intake.finish_committed',
        '((q.msg_id, q.read_ct) in (select * from unnest(p_msg_ids, p_read_cts))) is true',
        'true',
      );
    },
  },
  'prd-reaper': {
    summary: 'the reaper of the first plan: frees what no message on the queue names',
    subject: CLAIMS,
    apply: ({ db1 }) => db1.run(sqlFile('prd_reaper')),
  },
  'do-nothing': {
    summary: 'the ledger answers "committed" where another has the ticket',
    subject: CLAIMS,
    apply: ({ db2 }) => db2.run(sqlFile('do_nothing')),
  },
  'outage-counts': {
    summary: 'an outage is counted as an attempt of the message',
    subject: CLAIMS,
    apply: ({ db1 }) =>
      change(
        db1,
        'intake.finish_later',
        `when d.verdict = 'retry' then`,
        `when d.verdict <> 'validated' then`,
      ),
  },
  'suspect-in-the-crowd': {
    summary: 'a message that two workers did not finish is taken with the others',
    subject: CLAIMS,
    apply: ({ db1 }) =>
      change(
        db1,
        'intake.pick_messages',
        'and (q.read_ct < 2 or intake.takeovers(q.message, q.read_ct + 1) < 2)',
        '',
      ),
  },
  'blind-rebuild': {
    summary: 'a rebuild of the slot cache does not look at the claims',
    subject: CLAIMS,
    apply: ({ db1 }) =>
      change(
        db1,
        'intake.rebuild_inventory',
        'left join public.claims c on c.slot_id = m.slot_id and c.freed_at is null',
        'left join public.claims c on false',
      ),
  },
  'late-release': {
    summary: 'a claim can be released while the bridge has its message',
    subject: CLAIMS,
    apply: ({ db1 }) => db1.run(untaken(`not q.message ? 'replayed_from'`)),
  },
  'replayed-release': {
    summary: 'a claim can be released after a replay, while who had its old message may be slow',
    subject: CLAIMS,
    apply: ({ db1 }) =>
      db1.run(untaken(`q.read_ct = 0 or q.message -> 'untried' = jsonb_build_array(q.msg_id, q.read_ct)`)),
  },
  'blind-ledger': {
    summary: 'the ledger writes a ticket without looking for the tombstone of its claim',
    subject: CLAIMS,
    apply: ({ db2 }) =>
      change(
        db2,
        'public.finalize_batch',
        'not exists (select from public.voided_tickets v where v.claim_id = any (v_claim_ids))',
        'true',
      ),
  },
  'no-tombstone': {
    summary: 'the ledger says that a claim is voided and does not remember it',
    subject: CLAIMS,
    async apply({ db2 }) {
      await change(db2, 'public.void_tickets', 'where c.claim_id = any (v_placeholders)', 'where false');
      // It would refuse to delete the placeholder.
      await db2.run('alter table public.confirmed_tickets disable trigger tickets_leave_a_tombstone');
    },
  },
  'taken-hold': {
    summary: 'a hold that runs out ends its claim at once, even while a worker has its message',
    subject: CLAIMS,
    apply: ({ db1 }) =>
      change(
        db1,
        'public.expire_holds',
        'perform intake.begin_ends(array(',
        `perform intake.free_claims(array(`,
      ),
  },
  'patient-dead-letters': {
    summary: 'a dead letter keeps its slot after its hold',
    subject: CLAIMS,
    apply: ({ db1 }) =>
      change(db1, 'intake.lock_due', `c.state in ('queued', 'dead_letter')`, `c.state = 'queued'`),
  },
  'deaf-end': {
    summary: 'a claim ends although the ledger has its ticket',
    subject: CLAIMS,
    async apply({ db1 }) {
      await change(db1, 'public.finish_ends', `filter (where t.outcome = 'voided')`, 'filter (where true)');
      await change(db1, 'public.finish_ends', `filter (where t.outcome = 'ticket')`, 'filter (where false)');
    },
  },
  'webhook-late-mark': {
    summary: 'a worker may finish an event whatever its lease token',
    subject: EVENTS,
    async apply({ db2 }) {
      await change(db2, 'webhook.held_tasks', 'and e.lease_token = t.lease_token', '');
      await change(db2, 'webhook.hold_event', 'and e.lease_token = p_lease_token', '');
    },
  },
  'credit-per-event': {
    summary: 'two events that tell one fact are two credits',
    subject: EVENTS,
    apply: ({ db2 }) =>
      change(
        db2,
        'webhook.merge_payment',
        'greatest(p_known.captured, p_told.captured)',
        'p_known.captured + p_told.captured',
      ),
  },
  ...ORDER_CONTROLS,
};

export async function runControl(
  lanes: Lanes,
  name: string,
  control: Control,
  seed: number,
  isShrunk: boolean,
): Promise<ControlResult> {
  const lane = await lanes.open(control.apply);
  const histories = control.direct === undefined ? HISTORIES_MAX : HISTORIES_BEFORE_DIRECTED;
  const block = { subject: control.subject, seed, histories, isShrunk };
  const tally = await runBlocks([lane], [block], () => undefined);
  const found: Found | undefined = tally.violations[0];
  const direct = found === undefined ? await violationOf(control, lane) : undefined;
  return {
    ...{ name, seed, histories: found?.histories ?? tally.histories },
    violation: found?.violation ?? direct?.message ?? null,
    history: found?.history ?? direct?.history ?? [],
    isDirected: direct !== undefined,
  };
}

/** The violation of the control's own history; undefined if the history ends well or the control has none. */
export async function violationOf({ direct }: Control, lane: Lane): Promise<Violation | undefined> {
  try {
    await direct?.(lane);
  } catch (error) {
    if (error instanceof Violation) return error;
    throw error;
  }
  return undefined;
}
