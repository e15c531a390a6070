// What to think of what was found. Pure.

import type { HealthCheck } from '#core/console/health.ts';
import type { IntakeLook, LedgerLook } from '#core/console/sample.ts';
import type { SecretFault } from '#core/webhook/secrets.ts';
import { HOOK_SECRET, MAKE_HOOK_SECRET, readSign } from '../bridge/sign.ts';
import { isPooled } from '../db/pooler.ts';
import { misplacement, type SideName } from '../migrate/sides.ts';
import type { SecretUse } from '../webhook/secret_users.ts';
import { type Finding, fail, ok, skip, warn } from './finding.ts';
import type { Facts, Look, RefusingPool } from './look.ts';
import type { RightDifference } from './rights.ts';

const OLDEST_SERVER_VERSION = 150_000;
/** A healthy queue is younger than a second; a minute means a crowd, ten minutes mean that no worker runs. */
const QUEUE_WARN_SEC = 60;
const QUEUE_FAIL_SEC = 600;
const SHOWN = 3;

export const TITLES: Readonly<Record<SideName, string>> = { db1: 'DB1 intake', db2: 'DB2 ledger' };

export function judgeDatabase(side: SideName, seen: Look): Finding[] {
  const title = TITLES[side];
  const { facts } = seen;
  if (facts === undefined) {
    const todo = `start it, or mend ${side.toUpperCase()}_URL: address, password, network, sslmode`;
    return [fail(title, seen.error ?? 'does not answer', todo)];
  }
  return [
    facts.version_num < OLDEST_SERVER_VERSION
      ? fail(title, `Postgres ${facts.version}`, 'upgrade to Postgres 15 or newer')
      : ok(title, `Postgres ${facts.version}`),
    ...(facts.is_standby ? [fail(title, 'is a standby', 'give the address of the primary')] : []),
    judgeDurability(title, facts),
    ...(side === 'db1' ? [judgeIsolation(title, facts)] : []),
    judgeRole(title, facts),
    ...(seen.isDenied
      ? [
          warn(
            `${title}: migrations, rights`,
            `${facts.role} may not read them`,
            'run the doctor as the owner once',
          ),
        ]
      : [...judgeMigrations(side, seen), judgeRights(title, seen)]),
  ];
}

/** Nothing else is said about a database in the wrong place: what it lacks there, it should lack. */
export function judgeSides(db1: Look, db2: Look): Finding[] {
  const sides = { db1: db1.side, db2: db2.side };
  return (['db1', 'db2'] as const).flatMap((place) => {
    const wrong = misplacement(place, sides);
    return wrong === undefined ? [] : [fail(`${TITLES[place]}: address`, wrong.found, wrong.todo)];
  });
}

export function judgePools({ untriedPools }: Look): Finding {
  const [first] = untriedPools;
  if (first === undefined) return ok('pools', 'each lets its claims be tried');
  return warn(
    'pools',
    `${some(untriedPools.map((pool) => `${pool}: max_retries 1`))}, so that every claim is a dead letter without one try`,
    `\`sluice pools set ${first} --max-retries 10\`, then \`sluice dlq replay --pool ${first}\``,
  );
}

/** To refuse is the hook's right. One that refuses most claims is more often broken than strict. */
export function judgeRefusals({ refusingPools }: Look): Finding {
  const told = (pools: readonly RefusingPool[]) =>
    some(pools.map(({ pool_id, claims, refused }) => `${pool_id} ${refused} of ${claims}`));
  const [worst, ...others] = refusingPools.filter(({ claims, refused }) => refused * 2 > claims);
  if (worst !== undefined)
    return warn(
      'validation',
      `refused most of the newest claims: ${told([worst, ...others])}`,
      `\`sluice claims find --pool ${worst.pool_id} --state refused\` tells the status; look at the pool's validation hook`,
    );
  if (refusingPools.length === 0) return ok('validation', 'refused none of the newest claims');
  return ok('validation', `refused of the newest claims: ${told(refusingPools)}`);
}

/** A receiver knows only by the signature that Sluice sent a hook. The doctor's environment stands for the workers'. */
export function judgeHookSecret({ hookedPools }: Look, env: NodeJS.ProcessEnv): Finding {
  const check = 'hook signatures';
  const secrets = env[HOOK_SECRET];
  try {
    if (readSign(secrets) !== undefined) return ok(check, `${HOOK_SECRET} is set`);
  } catch (error) {
    return fail(check, (error as Error).message, `make one with: ${MAKE_HOOK_SECRET}`);
  }
  if (hookedPools.length === 0) return skip(check, 'no pool has a hook');
  return warn(
    check,
    `${some(hookedPools)}: hooks are called, and ${HOOK_SECRET} is not set here`,
    `give it to the workers and the receivers (docs/hooks.md); make one with: ${MAKE_HOOK_SECRET}`,
  );
}

/** Row policies hide rows without a word: tickets would seem to be missing. */
function judgeRole(title: string, { role, sees_all_rows }: Facts): Finding {
  if (sees_all_rows) return ok(`${title}: role`, `${role} sees all rows`);
  return fail(
    `${title}: role`,
    `row policies hide rows from ${role}`,
    `give ${role} the attribute bypassrls: see docs/secure.md`,
  );
}

/** The doctor's environment stands for that of servers and workers. */
export function judgePooler(side: SideName, { pooler }: Look, env: NodeJS.ProcessEnv): Finding[] {
  const check = `${TITLES[side]}: pooler`;
  const url = `${side.toUpperCase()}_URL`;
  const direct = `${side.toUpperCase()}_DIRECT_URL`;
  if (pooler === undefined) return [];
  if (!isPooled(env)) {
    if (pooler === 'none') return [];
    if (pooler === 'session') return [ok(check, 'in session mode, as far as can be seen')];
    const todo = `set SLUICE_POOLER=transaction for servers and workers, or give a direct address in ${url}`;
    return [fail(check, 'in transaction mode, and SLUICE_POOLER is not set', todo)];
  }
  if (pooler !== 'transaction')
    return [
      warn(
        check,
        `SLUICE_POOLER is transaction, and ${url} shows no such pooler: each call takes three round trips instead of one`,
        'unset SLUICE_POOLER where there is none',
      ),
    ];
  return [
    env[direct]
      ? ok(check, `in transaction mode; workers listen at ${direct}`)
      : ok(check, `in transaction mode; without ${direct} workers look four times a second`),
  ];
}

/** Promise I1 rests on it: what was acknowledged has to be on the disk. */
function judgeDurability(title: string, facts: Facts): Finding {
  const off = (['fsync', 'full_page_writes', 'synchronous_commit'] as const).filter(
    (name) => facts[name] === 'off',
  );
  if (off.length === 0) return ok(`${title}: durability`, 'commits reach the disk');
  return warn(
    `${title}: durability`,
    `${off.join(', ')} off`,
    'switch it on: a crash may lose acknowledged claims',
  );
}

/** Claim, release and expire refuse every other level. */
function judgeIsolation(title: string, { isolation, isolation_set_for: setFor }: Facts): Finding {
  const check = `${title}: isolation`;
  if (setFor.length > 0)
    return warn(
      check,
      `another level than read committed is set for ${some(setFor)}`,
      'claims are refused there: `alter role … reset default_transaction_isolation`, or `alter database …`',
    );
  if (isolation !== 'read committed')
    return warn(
      check,
      `the connection begins transactions at ${isolation}`,
      'claims are refused: set default_transaction_isolation to read committed in postgresql.conf or the address',
    );
  return ok(check, 'read committed');
}

function judgeMigrations(side: SideName, { missing, unknown, edited, applied }: Look): Finding[] {
  const check = `${TITLES[side]}: migrations`;
  const findings: Finding[] = [];
  if (missing.length > 0)
    findings.push(
      fail(
        check,
        `${missing.length} not applied: ${some(missing)}`,
        '`sluice migrate`, or `supabase db push`',
      ),
    );
  if (edited.length > 0)
    findings.push(
      fail(
        check,
        `${edited.length} edited since they were applied: ${some(edited)}`,
        'take the data along by export and import: docs/upgrade.md',
      ),
    );
  if (unknown.length > 0)
    findings.push(
      warn(
        check,
        `${unknown.length} of another version: ${some(unknown)}`,
        'use the program that applied them',
      ),
    );
  return findings.length > 0 ? findings : [ok(check, `all ${applied} applied`)];
}

function judgeRights(title: string, { rights: differences, rowSecurity = [] }: Look): Finding {
  const check = `${title}: rights`;
  if (differences === undefined) return skip(check, 'migrations are missing');
  if (differences.length === 0 && rowSecurity.length === 0)
    return ok(check, 'as granted by the migrations, and no others');
  const found = some([...rowSecurity, ...differences.map(told)]);
  if (rowSecurity.length > 0)
    return fail(check, found, 'put it back as the migrations have it: it decides who sees whose rows');
  const isOpen = differences.some(({ kind, role }) => kind === 'extra' && role !== 'service_role');
  const isShort = differences.some(({ kind }) => kind === 'missing');
  if (isOpen || isShort)
    return fail(
      check,
      found,
      isOpen ? 'revoke what is too much' : 'grant what is missing: see the access_rights migration',
    );
  return warn(check, found, 'revoke what is too much');
}

function told({ kind, role, privilege, object }: RightDifference): string {
  return `${role} ${kind === 'extra' ? 'may' : 'may not'} ${privilege} ${object}`;
}

const CURES: Readonly<Record<HealthCheck['kind'], string>> = {
  database: 'run NTP on both machines',
  extension: 'see docs/run_on_your_postgres.md',
  job: 'is `sluice work` or pg_cron running? cron.job_run_details tells more',
  workers: 'start `sluice work`',
  redis: 'start Redis, or unset SLUICE_REDIS_URL',
  inbox: 'see below',
  handler:
    'mend it in the module of SLUICE_HANDLERS and restart the workers, or `sluice webhooks handlers remove` it',
};

export function judgeHealth(checks: readonly HealthCheck[]): Finding[] {
  return checks.map(({ kind, name, status, summary, detail }) => {
    if (kind === 'database' && status === 'ok')
      return ok(`${name}: clock`, `${detail.clock_skew_ms} ms from ours, which is nothing`);
    const check = kind === 'database' ? `${name}: clock` : kind === 'job' ? `cron job ${name}` : name;
    if (kind === 'job' && detail.is_active === false) return warn(check, summary, cureOfJob(detail));
    if (status === 'off') return skip(check, summary);
    if (status === 'down') return fail(check, summary, CURES[kind]);
    return status === 'warn' ? warn(check, summary, CURES[kind]) : ok(check, summary);
  });
}

function cureOfJob({ schedule, name, database }: HealthCheck['detail']): string {
  return schedule === undefined
    ? `schedule it on ${database} as its migrations do (cron.schedule)`
    : `on ${database}: select cron.alter_job(jobid, active => true) from cron.job where jobname = '${name}'`;
}

export function judgeQueue({ queue_depth, oldest_msg_sec, dlq_depth }: IntakeLook): Finding[] {
  const age = oldest_msg_sec ?? 0;
  const found = `${queue_depth} waiting, the oldest for ${age} s`;
  const todo = '`sluice work` carries them; `sluice claims show` tells why one waits';
  return [
    age >= QUEUE_FAIL_SEC
      ? fail('queue', found, todo)
      : age >= QUEUE_WARN_SEC
        ? warn('queue', found, todo)
        : ok('queue', found),
    dlq_depth > 0
      ? warn('dead letters', `${dlq_depth} wait`, '`sluice dlq list`')
      : ok('dead letters', 'none'),
  ];
}

export function judgeWebhooks({ webhooks }: Pick<LedgerLook, 'webhooks'>): Finding[] {
  const { backlog, oldest_sec, dead_letters, payments_without_user, silent_disputes } = webhooks;
  const found = `${backlog} waiting, the oldest for ${oldest_sec ?? 0} s`;
  return [
    (oldest_sec ?? 0) >= QUEUE_WARN_SEC
      ? warn(
          'webhook events',
          found,
          '`sluice work` processes them; `sluice webhooks list --status failed` tells why',
        )
      : ok('webhook events', found),
    dead_letters > 0
      ? warn('webhook dead letters', `${dead_letters} wait`, '`sluice issues` tells why')
      : ok('webhook dead letters', 'none'),
    payments_without_user > 0
      ? warn(
          'payments without a user',
          `${payments_without_user} moved money, and no event names their user: their credits wait`,
          '`sluice webhooks payments list`, then `sluice webhooks payments name` each',
        )
      : ok('payments without a user', 'none'),
    silent_disputes > 0
      ? warn(
          'disputes without amounts',
          `${silent_disputes} payments have a dispute that moved money, and no event lists its balance transactions`,
          '`sluice reconcile --stripe` names them and the backfill that brings the amounts',
        )
      : ok('disputes without amounts', 'none'),
  ];
}

/** Copied every few seconds; a door that starts while DB2 is away goes by it. */
const DOORS_WARN_SEC = 120;

export function judgeInbox({ inbox }: IntakeLook): Finding[] {
  const { waiting, oldest_sec, dead_letters, doors_age_sec } = inbox;
  const found = `${waiting} waiting for DB2, the oldest for ${oldest_sec ?? 0} s`;
  const copied = 'copy of endpoints and sites';
  return [
    (oldest_sec ?? 0) >= QUEUE_WARN_SEC
      ? warn('inbox', found, '`sluice work` carries them; `sluice webhooks inbox` lists them')
      : ok('inbox', found),
    dead_letters > 0
      ? warn('inbox dead letters', `DB2 refused ${dead_letters}`, '`sluice webhooks inbox list --dead`')
      : ok('inbox dead letters', 'none'),
    doors_age_sec === null || doors_age_sec >= DOORS_WARN_SEC
      ? warn(
          copied,
          doors_age_sec === null ? 'there is none' : `${doors_age_sec} s old`,
          'a running `sluice serve`, or the Edge Function bridge-worker, makes it',
        )
      : ok(copied, `${doors_age_sec} s old`),
  ];
}

const ONE_ADDRESS = /^sluice_claims_one_address_minutes_total (\d+)$/m;

/** `metrics` is the page of the running server. */
export function judgeAddresses(metrics: string): Finding {
  const minutes = Number(ONE_ADDRESS.exec(metrics)?.[1] ?? Number.NaN);
  if (Number.isNaN(minutes)) return skip('addresses', 'the server does not count them');
  if (minutes === 0) return ok('addresses', 'no single one makes most claims, or a proxy is declared');
  return warn(
    'addresses',
    `one made most claims in ${minutes} ${minutes === 1 ? 'minute' : 'minutes'} since the server started, and no proxy is declared`,
    'if it is your proxy, set SLUICE_TRUSTED_PROXIES: all buyers behind it share one limit (docs/secure.md); the log has the address',
  );
}

/** The server refuses what is signed with a secret that it cannot use. */
export function judgeSecrets(uses: readonly SecretUse[]): Finding {
  const check = 'secrets';
  const faulty = (fault: SecretFault) =>
    some(
      uses.flatMap(({ user, secret, read }) =>
        'fault' in read && read.fault === fault ? [`${secret} (${user})`] : [],
      ),
    );
  if (uses.length === 0) return skip(check, 'no endpoint needs one');
  const [notAllowed, tooShort, notSet] = [faulty('not_allowed'), faulty('too_short'), faulty('not_set')];
  if (notAllowed !== '')
    return fail(
      check,
      `not on the list: ${notAllowed}`,
      '`sluice webhooks secrets allow NAME` as the owner of DB2, if the name is meant to be a secret',
    );
  if (tooShort !== '')
    return fail(check, `too short: ${tooShort}`, 'make a longer one with: openssl rand -base64 32');
  if (notSet !== '')
    return warn(
      check,
      `not set here: ${notSet}`,
      'set them where the server runs, and run the doctor with the same environment',
    );
  return ok(check, `all ${uses.length} are set here`);
}

function some(items: readonly string[]): string {
  const rest = items.length - SHOWN;
  return `${items.slice(0, SHOWN).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}
