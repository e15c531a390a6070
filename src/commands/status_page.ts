// What `sluice status` shows. Unknown is a dash, never a zero.

import type { LiveSample } from '#core/console/sample.ts';
import { formatTable, type Paint } from './table.ts';

const UNKNOWN = '-';

export function statusPage(sample: LiveSample, url: string, paint: Paint): string {
  const { webhooks, inbox } = sample;
  const rows = [
    ['claims', number(sample.claims_total), perSecond(sample.claims_per_sec), ''],
    ['queue', number(sample.queue_depth), perSecond(sample.drain_per_sec), queueNote(sample)],
    ['tickets', number(sample.ledger_total), perSecond(sample.commits_per_sec), ''],
    ['dead letters', number(sample.dlq_depth), '', sample.dlq_depth ? 'sluice dlq list' : ''],
    [
      'webhook events waiting',
      number(webhooks.backlog),
      perSecond(webhooks.per_sec),
      age(webhooks.oldest_sec),
    ],
    ['webhook dead letters', number(webhooks.dead_letters), '', ''],
    ['inbox, waiting for DB2', number(inbox.waiting), '', age(inbox.oldest_sec)],
    [
      'inbox dead letters',
      number(inbox.dead_letters),
      '',
      inbox.dead_letters ? 'sluice webhooks inbox list --dead' : '',
    ],
    ['calls', '', perSecond(sample.calls_per_sec), ''],
    ['bridge workers', number(sample.workers.bridge), '', crewNote(sample.workers.bridge)],
    ['webhook workers', number(sample.workers.webhook), '', crewNote(sample.workers.webhook)],
  ];
  const hasCells = sample.cells !== undefined;
  const pools = (sample.pools ?? []).map((pool) => [
    pool.pool_id,
    ...(hasCells ? [pool.cell ?? UNKNOWN] : []),
    number(pool.capacity),
    number(pool.available),
    number(pool.reserved),
    number(pool.consumed),
  ]);
  return [
    `${url}   ${sample.at.replace(/\.\d+/, '')}`,
    [
      `DB1 intake ${database(sample.db1, paint)}`,
      ...cellsText(sample, paint),
      `DB2 ledger ${database(sample.db2, paint)}`,
    ].join('   '),
    '',
    formatTable(['', 'NOW', 'RATE', ''], rows),
    ...troubleLines(sample, paint),
    ...(pools.length === 0
      ? []
      : [
          '',
          formatTable(['POOL', ...(hasCells ? ['CELL'] : []), 'CAPACITY', 'FREE', 'HELD', 'SOLD'], pools),
        ]),
  ].join('\n');
}

/** One line a second, for a log. */
export function statusLine(sample: LiveSample): string {
  return [
    sample.at,
    `claims ${perSecond(sample.claims_per_sec)}`,
    `queue ${number(sample.queue_depth)}`,
    `tickets ${number(sample.ledger_total)} ${perSecond(sample.commits_per_sec)}`,
    `dead ${number(sample.dlq_depth)}`,
    `db1 ${sample.db1.ok ? 'ok' : 'DOWN'}`,
    `db2 ${sample.db2.ok ? 'ok' : 'DOWN'}`,
    ...(sample.cells ?? []).filter(({ ok }) => !ok).map(({ name }) => `cell ${name} AWAY`),
  ].join('  ');
}

function queueNote({ oldest_msg_sec, eta_sec, queue_depth }: LiveSample): string {
  if (!queue_depth) return '';
  return [age(oldest_msg_sec), eta_sec === null ? '' : `empty in ${eta_sec} s`].filter(Boolean).join(', ');
}

/** Workers are seen by the connections they hold. */
function crewNote(connections: number | null): string {
  if (connections === null) return '';
  if (connections === 0) return 'none; start some with sluice work';
  return connections === 1 ? 'connection' : 'connections';
}

function age(seconds: number | null): string {
  return seconds === null ? '' : `oldest ${seconds} s`;
}

function cellsText({ cells = [] }: LiveSample, paint: Paint): string[] {
  return cells.map(({ name, ok }) => `cell ${name} ${ok ? paint('green', 'ok') : paint('red', 'AWAY')}`);
}

/** What waits for a person, a line each. */
function troubleLines({ troubles }: LiveSample, paint: Paint): string[] {
  if (!troubles || troubles.length === 0) return [];
  const lines = troubles.map(({ kind, subject, why }) =>
    paint(
      'red',
      `${kind === 'secret' ? 'secret missing' : 'left alone'}: ${subject}${why === null ? '' : `: ${why}`}`,
    ),
  );
  return ['', ...lines];
}

function database({ ok, ms }: LiveSample['db1'], paint: Paint): string {
  return ok ? paint('green', `ok ${Math.round(ms)} ms`) : paint('red', 'DOWN');
}

function number(value: number | null): string {
  return value === null ? UNKNOWN : value.toLocaleString('en-US');
}

function perSecond(value: number | null): string {
  return value === null ? UNKNOWN : `${number(value)}/s`;
}
