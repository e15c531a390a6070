// What the console draws, described: the live sample, and what is remembered.

import type { AnswerSchema } from './document.ts';
import { ANYTHING, LEVELS, ref } from './operators.ts';
import { COUNT, COUNT_OR_NULL, FLAG, shape, TEXT, TEXT_OR_NULL } from './shapes.ts';

const NUMBER_OR_NULL = { type: ['number', 'null'] } as const;
const DATABASE = shape({ ok: FLAG, ms: { type: 'number' }, away_since: TEXT }, ['away_since']);
const ROWS = { type: 'array', items: { type: 'array', items: ANYTHING } } as const;

export const SAMPLE_SCHEMAS: { readonly [name: string]: AnswerSchema } = {
  LiveSample: shape({
    at: TEXT,
    claims_total: COUNT_OR_NULL,
    claims_per_sec: NUMBER_OR_NULL,
    queue_depth: COUNT_OR_NULL,
    oldest_msg_sec: NUMBER_OR_NULL,
    drain_per_sec: NUMBER_OR_NULL,
    eta_sec: COUNT_OR_NULL,
    ledger_total: COUNT_OR_NULL,
    commits_per_sec: NUMBER_OR_NULL,
    dlq_depth: COUNT_OR_NULL,
    hold_oldest_sec: NUMBER_OR_NULL,
    ticket_p50_sec: NUMBER_OR_NULL,
    ticket_p99_sec: NUMBER_OR_NULL,
    webhooks: shape({
      backlog: COUNT_OR_NULL,
      oldest_sec: NUMBER_OR_NULL,
      dead_letters: COUNT_OR_NULL,
      per_sec: NUMBER_OR_NULL,
    }),
    inbox: shape({ waiting: COUNT_OR_NULL, oldest_sec: NUMBER_OR_NULL, dead_letters: COUNT_OR_NULL }),
    orders: shape({
      past_bound: COUNT_OR_NULL,
      outbox_oldest_sec: NUMBER_OR_NULL,
      refunds_waiting: COUNT_OR_NULL,
      is_braked: { type: ['boolean', 'null'] },
    }),
    calls_per_sec: NUMBER_OR_NULL,
    pools: { type: ['array', 'null'], items: shape({ pool_id: TEXT, ...LEVELS, waiting: COUNT_OR_NULL }) },
    workers: shape({ bridge: COUNT_OR_NULL, webhook: COUNT_OR_NULL }),
    troubles: {
      type: ['array', 'null'],
      description:
        'What goes on and waits for a person: breaker, a target that workers leave alone; secret, an endpoint whose secret a server misses.',
      items: shape({ kind: TEXT, subject: TEXT, why: TEXT_OR_NULL, since: TEXT }),
    },
    issues: {
      type: ['object', 'null'],
      description: 'How many issues are `open`, and the five of them that were seen last (`newest`).',
    },
    db1: DATABASE,
    db2: DATABASE,
  }),
  Mark: shape(
    {
      kind: {
        ...TEXT,
        description: 'outage, breaker, failover, restart, deploy, start, alert, secret or action.',
      },
      subject: TEXT,
      source: { ...TEXT, description: 'The database that noted it.' },
      began_at: TEXT,
      ended_at: { ...TEXT_OR_NULL, description: 'Null: it goes on.' },
      actor: TEXT,
      times: COUNT,
      target: TEXT,
      why: { ...TEXT, description: 'What is known of the cause.' },
    },
    ['actor', 'times', 'target', 'why'],
  ),
  SampleHistory: shape({
    from: TEXT,
    to: TEXT,
    step_sec: COUNT,
    databases: { type: 'array', items: shape({ name: TEXT, ok: FLAG }) },
    columns: { type: 'array', items: TEXT },
    rows: ROWS,
    marks: { type: 'array', items: ref('Mark') },
    parts: { type: 'array', items: TEXT },
    part: { type: ['object', 'null'], description: 'Columns and rows of what `of` names.' },
  }),
};
