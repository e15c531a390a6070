// Everything an operator has to know about the parts Sluice runs on, as one list of checks.

import type { CallFunction } from '../call_function.ts';
import type { Clock } from '../ports.ts';
import { jsonResponse, type Route } from '../router.ts';
import type { IntakeLook } from './sample.ts';

export interface HealthCheck {
  readonly kind: 'database' | 'extension' | 'job' | 'workers' | 'redis' | 'handler' | 'inbox';
  readonly name: string;
  /** off: not used here. */
  readonly status: 'ok' | 'warn' | 'down' | 'off';
  readonly summary: string;
  readonly detail: Readonly<Record<string, unknown>>;
}

export interface HealthCheckPorts {
  /** One for each cell; the only one has no name. */
  readonly intakes: readonly { readonly name?: string; readonly call: CallFunction }[];
  readonly db2: CallFunction;
  readonly now: Clock;
  /** Where Redis is configured: rejects while it does not answer. */
  readonly pingRedis?: () => Promise<unknown>;
}

/** What public.intake_health and public.ledger_health have in common. */
interface Vitals {
  readonly version: string;
  readonly now_ms: number;
  /** By application_name. */
  readonly connections: Readonly<Record<string, number>>;
  /** Without a worker: the Edge Function, or pg_cron, has done its work in the last minutes. */
  readonly is_served?: boolean;
}

interface Job {
  readonly name: string;
  readonly schedule: string;
  readonly is_active: boolean;
  readonly last_status: string | null;
  readonly last_start_ms: number | null;
  readonly last_message: string | null;
}

interface LedgerVitals extends Vitals {
  /** None where it has no pg_cron. */
  readonly jobs?: readonly Job[];
  /** By the name of the handler: why it is disabled. */
  readonly handler_faults?: Readonly<Record<string, string>>;
}

interface IntakeVitals extends Vitals {
  readonly extensions: Readonly<Record<string, string>>;
  readonly is_stand_in: boolean;
  readonly jobs: readonly Job[];
}

/** Signatures and holds depend on the clock; they tolerate this much. */
const MAX_SKEW_MS = 1_000;
const EVERY_MINUTE = /^(\*\/[1-5]|\*) \* \* \* \*$/;
/** A job of every few minutes that has not run for so long does not run. */
const LATE_MS = 10 * 60 * 1_000;
/** Our jobs, and what it means when one does not run. */
export const JOBS = {
  DB1: {
    drain_queue_answer: 'a bridge worker that refuses its calls is not noticed',
    drain_queue_trigger: 'the bridge worker among the Edge Functions is not called',
    expire_holds: 'holds do not end',
    metrics_snapshot: 'engine_metrics stands still',
    rebuild_lost_pools: 'after a crash a pool stays empty until it is asked for',
    reap_orphaned_slots: 'reserved slots without a claim stay off sale',
    retention: 'what is to be kept for a while is kept for ever',
    seal_audit: 'the audit log is not sealed without a worker',
  },
  DB2: {
    retention: 'what is to be kept for a while is kept for ever',
    seal_audit: 'the audit log is not sealed without a worker',
    webhook_hung: 'a handler that hangs keeps up all events',
    webhook_work: 'queued events wait for a worker',
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, string>>>>;
/** A worker carries a delivery within a second; one that waits for longer waits for DB2. */
const INBOX_WARN_SEC = 60;
const WEBHOOK_WORKER = 'sluice-webhook-worker';
const EXTENSIONS = ['pgmq', 'pg_cron', 'pg_net'];

export function healthCheckRoutes(ports: HealthCheckPorts): Route[] {
  return [
    {
      method: 'GET',
      path: '/admin/health',
      handle: async () => jsonResponse(200, { items: await checkHealth(ports), next: null }),
    },
  ];
}

/** An outage is a finding, never an error. */
export async function checkHealth(ports: HealthCheckPorts): Promise<HealthCheck[]> {
  const [intakes, db2, redis] = await Promise.all([
    Promise.all(
      ports.intakes.map(async ({ name, call }) => ({
        name,
        ...(await examine<IntakeVitals>(
          ports,
          call,
          'intake_health',
          name ? `DB1 cell ${name}` : 'DB1 intake',
        )),
        inbox: await inboxChecks(call),
      })),
    ),
    examine<LedgerVitals>(ports, ports.db2, 'ledger_health', 'DB2 ledger'),
    checkRedis(ports),
  ]);
  const ofLedger =
    db2.vitals === undefined ? [] : [webhookWorkerCheck(db2.vitals), ...handlerChecks(db2.vitals)];
  const [workers, others] = [
    intakes.flatMap((intake) => insideOf(intake, (vitals) => [bridgeWorkerCheck(vitals)])),
    intakes.flatMap((intake) =>
      insideOf(intake, (vitals) => [
        ...intake.inbox,
        schedulerCheck(vitals),
        ...EXTENSIONS.map((name) => extensionCheck(name, vitals)),
        ...jobChecks('DB1', vitals.jobs, ports.now()),
      ]),
    ),
  ];
  const jobsOfLedger = db2.vitals === undefined ? [] : ledgerJobChecks(db2.vitals, ports.now());
  const databases = [...intakes.map(({ check }) => check), db2.check];
  return [...databases, redis, ...workers, ...ofLedger, ...others, ...jobsOfLedger];
}

/** What is inside an intake that answers; its checks name the cell where there are several. */
function insideOf(
  { name, vitals }: { name: string | undefined; vitals?: IntakeVitals },
  checksOf: (vitals: IntakeVitals) => HealthCheck[],
): HealthCheck[] {
  const checks = vitals === undefined ? [] : checksOf(vitals);
  return name ? checks.map((check) => ({ ...check, name: `${check.name} (cell ${name})` })) : checks;
}

async function examine<V extends Vitals>(
  { now }: HealthCheckPorts,
  call: CallFunction,
  functionName: string,
  name: string,
): Promise<{ check: HealthCheck; vitals?: V }> {
  const kind = 'database';
  const asked = now();
  try {
    const [row] = await call<Record<string, V>>(functionName, {});
    const vitals = row?.[functionName];
    if (vitals === undefined) throw new Error(`${functionName} gave no answer`);
    const ms = now() - asked;
    const clock_skew_ms = Math.round(vitals.now_ms - asked - ms / 2);
    const isSkewed = Math.abs(clock_skew_ms) > MAX_SKEW_MS + ms;
    const summary = isSkewed
      ? `its clock is ${clock_skew_ms} ms away from this server's`
      : `Postgres ${vitals.version}, ${ms} ms`;
    const { version, connections } = vitals;
    const detail = { version, ms, clock_skew_ms, connections };
    return { check: { kind, name, status: isSkewed ? 'warn' : 'ok', summary, detail }, vitals };
  } catch (error) {
    const detail = { ms: now() - asked, code: (error as { code?: unknown } | null)?.code ?? null };
    return { check: { kind, name, status: 'down', summary: 'does not answer', detail } };
  }
}

async function checkRedis({ pingRedis, now }: HealthCheckPorts): Promise<HealthCheck> {
  const check = { kind: 'redis', name: 'Redis' } as const;
  if (pingRedis === undefined) return { ...check, status: 'off', summary: 'not configured', detail: {} };
  const asked = now();
  try {
    await pingRedis();
    const ms = now() - asked;
    return { ...check, status: 'ok', summary: `${ms} ms`, detail: { ms } };
  } catch {
    return { ...check, status: 'warn', summary: 'does not answer; the databases decide alone', detail: {} };
  }
}

function connectionsText(count: number): string {
  return `${count} ${count === 1 ? 'connection' : 'connections'}`;
}

/** Workers announce themselves by the name of their connections, in the database that they take work from. */
function crewCheck(
  name: string,
  application: string,
  { connections, is_served = false }: Vitals,
  standIn: string,
): HealthCheck {
  const workers = connections[application] ?? 0;
  const none = is_served
    ? `none; ${standIn} does the work`
    : 'none is connected; start one with "sluice work"';
  return {
    kind: 'workers',
    name,
    status: workers > 0 || is_served ? 'ok' : 'warn',
    summary: workers > 0 ? connectionsText(workers) : none,
    detail: { connections: workers },
  };
}

function bridgeWorkerCheck(vitals: Vitals): HealthCheck {
  return crewCheck('Bridge workers', 'sluice-worker', vitals, 'the Edge Function bridge-worker');
}

function webhookWorkerCheck(vitals: Vitals): HealthCheck {
  return crewCheck('Webhook workers', WEBHOOK_WORKER, vitals, 'pg_cron');
}

function handlerChecks({ handler_faults = {} }: LedgerVitals): HealthCheck[] {
  return Object.entries(handler_faults).map(([name, fault]) => ({
    kind: 'handler',
    name: `Handler ${name}`,
    status: 'down',
    summary: `disabled, so that its events wait: ${fault}`,
    detail: { fault },
  }));
}

/** What waits for DB2. Where DB1 stopped answering since it was examined, nothing is said. */
async function inboxChecks(call: CallFunction): Promise<HealthCheck[]> {
  const [row] = await call<{ live_sample: IntakeLook }>('live_sample', {}).catch(() => []);
  if (row === undefined) return [];
  const { waiting, oldest_sec, dead_letters, doors_age_sec } = row.live_sample.inbox;
  const parts = [
    waiting === 0 ? 'empty' : `${waiting} wait for DB2, the oldest for ${oldest_sec} s`,
    ...(dead_letters > 0 ? [`DB2 refused ${dead_letters}: "sluice webhooks inbox list --dead"`] : []),
  ];
  return [
    {
      kind: 'inbox',
      name: 'Event inbox',
      status: (oldest_sec ?? 0) > INBOX_WARN_SEC || dead_letters > 0 ? 'warn' : 'ok',
      summary: parts.join('; '),
      detail: { waiting, oldest_sec, dead_letters, doors_age_sec },
    },
  ];
}

function schedulerCheck({ connections, is_stand_in }: IntakeVitals): HealthCheck {
  const schedulers = connections['sluice-scheduler'] ?? 0;
  return {
    kind: 'workers',
    name: 'Scheduler',
    status: !is_stand_in ? 'off' : schedulers > 0 ? 'ok' : 'warn',
    summary: !is_stand_in
      ? 'pg_cron runs the jobs'
      : schedulers > 0
        ? connectionsText(schedulers)
        : 'no scheduler runs the cron jobs; start "sluice work"',
    detail: { connections: schedulers },
  };
}

function extensionCheck(name: string, { extensions, is_stand_in }: IntakeVitals): HealthCheck {
  const version = extensions[name];
  const isStandIn = is_stand_in && name !== 'pgmq';
  const summary = version === undefined ? 'plain SQL in its place' : isStandIn ? 'our stand-in' : version;
  return { kind: 'extension', name, status: 'ok', summary, detail: { version: version ?? null } };
}

/** Where the ledger has no pg_cron, its workers do without. */
function ledgerJobChecks({ jobs = [], connections }: LedgerVitals, now: number): HealthCheck[] {
  if (jobs.length === 0 && connections[WEBHOOK_WORKER] !== undefined) return [];
  return jobChecks('DB2', jobs, now).map((check) => ({ ...check, name: `${check.name} (DB2)` }));
}

/** Those that are scheduled, and those that should be. */
function jobChecks(database: keyof typeof JOBS, jobs: readonly Job[], now: number): HealthCheck[] {
  const scheduled = new Set(jobs.map(({ name }) => name));
  const missing = Object.entries(JOBS[database]).filter(([name]) => !scheduled.has(name));
  const checks: HealthCheck[] = [
    ...jobs.map((job) => jobCheck(job, JOBS[database], now)),
    ...missing.map(([name, meaning]) => ({
      kind: 'job' as const,
      name,
      status: 'warn' as const,
      summary: `not scheduled: ${meaning}`,
      detail: { is_active: false, last_start_ms: null },
    })),
  ];
  return checks.map((check) => ({ ...check, detail: { ...check.detail, database } }));
}

function jobCheck(job: Job, meanings: Readonly<Record<string, string>>, now: number): HealthCheck {
  const { name, last_status, last_start_ms } = job;
  const check = (status: HealthCheck['status'], summary: string): HealthCheck => ({
    kind: 'job',
    name,
    status,
    summary,
    detail: { ...job },
  });
  if (!job.is_active) return check('warn', `switched off: ${meanings[name] ?? 'it does not run'}`);
  if (last_start_ms === null)
    // A new database has not seen the hour of its daily jobs.
    return EVERY_MINUTE.test(job.schedule)
      ? check('warn', 'has not run yet')
      : check('ok', `has not run yet; its time is ${job.schedule}`);
  if (last_status === 'failed')
    return check('warn', `its last run failed: ${job.last_message ?? 'no reason is known'}`);
  const agoMs = now - last_start_ms;
  if (EVERY_MINUTE.test(job.schedule) && agoMs > LATE_MS)
    return check('warn', `last ran ${Math.round(agoMs / 60_000)} min ago`);
  return check('ok', last_status ?? 'running');
}
