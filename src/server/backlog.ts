// What waits in DB2, and what operators sent round again: asked for when somebody looks, because no process knows it alone.

import { Counter, Gauge, Registry } from 'prom-client';
import type { CallFunction } from '#core/call_function.ts';
import type { Log } from '#core/ports.ts';
import type { Page } from '../metrics.ts';
import { keptForASecond } from './kept.ts';

/** A row of webhook.metrics. */
interface BacklogRow {
  readonly webhook_id: string;
  readonly provider: string;
  readonly pending: number;
  readonly failed: number;
  readonly processing: number;
  readonly dead_letter: number;
  /** Null where nothing is due. */
  readonly oldest_due_sec: number | null;
}

/** A row of webhook.replay_totals. */
interface ReplayRow {
  readonly webhook_id: string;
  readonly operator: string;
  readonly total: number;
}

interface Look {
  readonly rows: readonly BacklogRow[];
  readonly totals: readonly ReplayRow[];
}

const STATUSES = ['pending', 'failed', 'processing', 'dead_letter'] as const;

/** `call` takes names of functions in schema webhook of DB2. Without DB2 the page says so and the rest is missing. */
export function createBacklog(
  call: CallFunction,
  log: Log,
  now: () => number = Date.now,
  waitMs?: number,
): Page {
  const registry = new Registry();
  return keptForASecond(registry, {
    database: 'DB2',
    look: async (): Promise<Look> => {
      const [rows, totals] = await Promise.all([
        call<BacklogRow>('metrics', {}),
        call<ReplayRow>('replay_totals', {}),
      ]);
      return { rows, totals };
    },
    show: createGauges(registry),
    log,
    now,
    waitMs,
  });
}

function createGauges(registry: Registry) {
  const registers = [registry];
  const isUp = new Gauge({
    name: 'webhook_database_up',
    help: 'Whether DB2 answered; where it is 0 the other numbers about it are missing.',
    registers,
  });
  const backlog = new Gauge({
    name: 'webhook_backlog',
    help: 'Events that have not ended, and dead letters, by status.',
    labelNames: ['webhook_id', 'provider', 'status'],
    registers,
  });
  const oldest = new Gauge({
    name: 'webhook_oldest_due_seconds',
    help: 'How long the oldest event that could be processed has been waiting.',
    labelNames: ['webhook_id', 'provider'],
    registers,
  });
  const replays = new Counter({
    name: 'webhook_replay_total',
    help: 'Events sent round again by operators, from the audit log.',
    labelNames: ['webhook_id', 'operator'],
    registers,
  });
  return (look: Look | undefined): void => {
    isUp.set(look === undefined ? 0 : 1);
    for (const metric of [backlog, oldest, replays]) metric.reset();
    if (look === undefined) return;
    for (const row of look.rows) {
      const labels = { webhook_id: row.webhook_id, provider: row.provider };
      for (const status of STATUSES) backlog.set({ ...labels, status }, row[status]);
      oldest.set(labels, row.oldest_due_sec ?? 0);
    }
    for (const { webhook_id, operator, total } of look.totals) replays.inc({ webhook_id, operator }, total);
  };
}
