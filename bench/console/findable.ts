// How long an operator waits for the first row of what is looked for, with a million claims: through the real server, and with the
// plan of each statement behind it. Beside them what sampling costs, and what the indexes of a search cost the manifest.

import { type Column, column, makeTable, NAME } from '../rows.ts';
import { KEYS, startOurs } from '../servers.ts';
import { median } from '../stats.ts';
import type { Demand, Row } from '../suite.ts';
import { openWorld, sql, type World } from '../world.ts';
import { isManifest, manifestTable, measureManifest } from './manifest.ts';
import { planOf, statementsOf } from './plans.ts';
import { isSampling, measureSampling, samplingTable } from './sampling.ts';

interface Size {
  readonly claims: number;
  readonly payments: number;
  readonly repetitions: number;
}
const FULL: Size = { claims: 1_000_000, payments: 200_000, repetitions: 7 };
const QUICK: Size = { claims: 2_000, payments: 400, repetitions: 1 };

/** An operator waits no longer for a first row. */
const MAX_MS = 1_000;
const PAGE = 200;
const ROWS_A_PAGE = 50;

interface Question {
  readonly name: string;
  readonly path: string;
}

/** `somewhere` is a claim in the middle of the table, `slot` is its slot. */
function questions(somewhere: string, slot: string, { claims }: Size): Question[] {
  const page = Math.min(PAGE, Math.floor(claims / ROWS_A_PAGE / 4));
  const list = (name: string, query: string) => `/admin/${name}?limit=${ROWS_A_PAGE}&${query}`;
  return [
    { name: 'search-id', path: `/admin/search?q=${somewhere}` },
    { name: 'search-id-beginning', path: `/admin/search?q=${somewhere.slice(0, 23)}` },
    { name: 'search-id-4-digits', path: `/admin/search?q=${somewhere.slice(0, 4)}` },
    { name: 'search-seat', path: `/admin/search?q=${slot.slice(-8)}` },
    { name: 'search-user', path: '/admin/search?q=user%2012' },
    { name: 'search-payment', path: '/admin/search?q=pi_12' },
    { name: 'search-event', path: '/admin/search?q=evt_12' },
    { name: 'search-request', path: '/admin/search?q=request%20123' },
    { name: 'search-nothing', path: '/admin/search?q=nothing%20is%20called%20this' },
    { name: 'claims-newest', path: list('claims', '') },
    { name: 'claims-by-user', path: list('claims', 'user_id=user%20123') },
    { name: 'claims-by-frequent-state', path: list('claims', 'state=committed') },
    { name: 'claims-by-rare-state', path: list('claims', 'state=dead_letter') },
    { name: 'claims-by-rare-pool', path: list('claims', 'pool_id=rare') },
    { name: 'claims-by-absent-pool', path: list('claims', 'pool_id=absent') },
    { name: `claims-page-${PAGE}`, path: list('claims', `page=${page}`) },
    { name: `claims-page-${PAGE}-filtered`, path: list('claims', `state=committed&page=${page}`) },
    { name: 'tickets-by-rare-pool', path: list('tickets', 'pool_id=rare') },
    { name: `tickets-page-${PAGE}`, path: list('tickets', `page=${page}`) },
    { name: `payments-page-${PAGE}`, path: list('payments', `page=${page}`) },
    { name: 'payments-by-state', path: list('payments', 'state=refunded') },
    { name: `credits-page-${PAGE}`, path: list('credits', `page=${page}`) },
    { name: `events-page-${PAGE}`, path: list('webhooks/events', `page=${page}`) },
    { name: 'total-claims', path: '/admin/totals/claims' },
    { name: 'total-claims-by-frequent-state', path: '/admin/totals/claims?state=committed' },
    { name: 'total-claims-by-rare-state', path: '/admin/totals/claims?state=dead_letter' },
    { name: 'total-tickets-by-rare-pool', path: '/admin/totals/tickets?pool_id=rare' },
    { name: 'export-claims', path: '/admin/export/claims' },
    { name: 'export-claims-by-rare-state', path: '/admin/export/claims?state=dead_letter' },
    { name: 'export-tickets', path: '/admin/export/tickets?format=json' },
  ];
}

const EXPORT = /^\/admin\/export\//;

/** Milliseconds to the first byte of the body, and how much came in all; of an export no more is read than its first part. */
async function ask(url: string, path: string): Promise<{ first: number; whole: number; bytes: number }> {
  const started = performance.now();
  const response = await fetch(url + path, { headers: { authorization: `Bearer ${KEYS.adminKey}` } });
  if (!response.ok || response.body === null) throw new Error(`${path}: ${response.status}`);
  let first: number | undefined;
  let bytes = 0;
  for await (const part of response.body) {
    first ??= performance.now() - started;
    bytes += (part as Uint8Array).length;
    if (EXPORT.test(path)) break;
  }
  const whole = performance.now() - started;
  return { first: first ?? whole, whole, bytes };
}

async function fill({ db1, db2 }: World, { claims, payments }: Size): Promise<void> {
  await db1.run(sql('findable_db1.sql'));
  await db2.run(sql('findable_db2.sql'));
  await db1.run(`select bench_findable(${claims})`);
  await db2.run(`select bench_findable(${claims}, ${payments})`);
  await db1.run('vacuum analyze');
  await db2.run('vacuum analyze');
}

const COLUMNS: Column[] = [
  NAME,
  column('first row ms', 'p50_ms'),
  column('longest', 'p99_ms'),
  column('first ask', 'first_ask_ms'),
  column('whole ms', 'whole_ms'),
  column('bytes', 'bytes'),
];

const isQuestion = (row: Row): boolean => row.first_ask_ms !== undefined;
/** What is measured beside a million claims, and not in a burst. */
export const isFindable = (row: Row): boolean => isQuestion(row) || isSampling(row) || isManifest(row);

/** A table for each kind of row that there is; older summaries have fewer. */
export function findableTable(rows: readonly Row[]): string {
  const kinds = [
    [rows.filter(isQuestion), (some: readonly Row[]) => makeTable(COLUMNS, some)],
    [rows.filter(isSampling), samplingTable],
    [rows.filter(isManifest), manifestTable],
  ] as const;
  return kinds.flatMap(([some, table]) => (some.length === 0 ? [] : [table(some)])).join('\n\n');
}

export interface Findable {
  readonly rows: readonly Row[];
  readonly demands: readonly Demand[];
  readonly plans: string;
}

export async function measureFindable(isQuick: boolean, progress: (line: string) => void): Promise<Findable> {
  const size = isQuick ? QUICK : FULL;
  progress(`filling with ${size.claims} claims`);
  const world = await openWorld({}, (own) => fill(own, size));
  try {
    const found = await measureQuestions(world, size, isQuick, progress);
    // The server has stopped: neither it nor a page is in the way.
    const sampling = await measureSampling(world, isQuick, progress);
    const manifest = await measureManifest(world, isQuick, progress);
    return {
      ...found,
      rows: [...found.rows, sampling.row, ...manifest],
      demands: [...found.demands, sampling.demand],
    };
  } finally {
    await world.stop();
  }
}

async function measureQuestions(
  world: World,
  size: Size,
  isQuick: boolean,
  progress: (line: string) => void,
): Promise<Findable> {
  const server = await startOurs(world);
  try {
    const somewhere = await world.db1.ask<string>(
      'select claim_id::text from public.claims order by claim_id offset $1 limit 1',
      [Math.floor(size.claims / 2)],
    );
    const slot = await world.db1.ask<string>('select slot_id::text from public.claims where claim_id = $1', [
      somewhere,
    ]);
    const rows: Row[] = [];
    const asked = questions(somewhere, slot, size);
    for (const { name, path } of asked) {
      progress(name);
      const answers = [];
      for (let turn = 0; turn < size.repetitions; turn++) answers.push(await ask(server.url, path));
      const firsts = answers.map(({ first }) => first);
      const p50_ms = round(median(firsts));
      rows.push({
        name,
        ...{ clients: 1, batch: 1, rate: 1_000 / p50_ms, p50_ms, p99_ms: round(Math.max(...firsts)) },
        wal_bytes_per_op: 0,
        first_ask_ms: round(answers[0]?.first ?? 0),
        whole_ms: round(Math.max(...answers.map(({ whole }) => whole))),
        bytes: answers[0]?.bytes ?? 0,
      });
    }
    progress('plans');
    const plans: string[] = [];
    for (const { name, path } of asked)
      for (const statement of statementsOf(path)) {
        const url = statement.side === 'db1' ? world.db1Url : world.db2Url;
        plans.push(`${name}: ${statement.text}\n${await planOf(url, statement)}`);
      }
    const slowest = rows.reduce((a, b) => (a.p99_ms > b.p99_ms ? a : b));
    return {
      rows,
      demands: [
        {
          what: `one second / the longest wait for a first row (${slowest.name})`,
          atLeast: 1,
          ...(!isQuick && { value: MAX_MS / slowest.p99_ms }),
        },
      ],
      plans: plans.join('\n\n'),
    };
  } finally {
    await server.stop();
  }
}

const round = (ms: number): number => Math.max(0.1, Math.round(ms * 10) / 10);
