// What `sluice status --since` draws: a line of bars for each number, and what happened meanwhile. Where a number is not known the
// line has a gap, never a zero.

import { type Mark, markText } from '#core/console/marks.ts';
import type { SampleHistory } from '#core/console/samples.ts';
import { formatTable, type Paint, terminalWidth, toTheSecond } from './table.ts';

const BARS = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const GAP = ' ';
/** Where a database did not answer. */
const OUTAGE = '×';
const WIDEST = 72;
const NARROWEST = 16;
/** What stands beside a line: its name, now and most, with the gaps. */
const BESIDE = 56;
const MOST_MARKS = 20;

interface Line {
  readonly name: string;
  readonly column: string;
  readonly unit: '' | '/s' | ' s';
  readonly source: 'db1_ok' | 'db2_ok';
}

const LINES: readonly Line[] = [
  { name: 'claims', column: 'claims_per_sec', unit: '/s', source: 'db1_ok' },
  { name: 'queue', column: 'queue_depth', unit: '', source: 'db1_ok' },
  { name: 'oldest message', column: 'oldest_msg_sec', unit: ' s', source: 'db1_ok' },
  { name: 'drained', column: 'drain_per_sec', unit: '/s', source: 'db1_ok' },
  { name: 'tickets', column: 'commits_per_sec', unit: '/s', source: 'db2_ok' },
  { name: 'claim to ticket, half', column: 'ticket_p50_sec', unit: ' s', source: 'db2_ok' },
  { name: 'claim to ticket, 99 %', column: 'ticket_p99_sec', unit: ' s', source: 'db2_ok' },
  { name: 'oldest hold', column: 'hold_oldest_sec', unit: ' s', source: 'db1_ok' },
  { name: 'dead letters', column: 'dlq_depth', unit: '', source: 'db1_ok' },
  { name: 'events', column: 'webhooks_per_sec', unit: '/s', source: 'db2_ok' },
  { name: 'events waiting', column: 'webhooks_backlog', unit: '', source: 'db2_ok' },
  { name: 'oldest event', column: 'webhooks_oldest_sec', unit: ' s', source: 'db2_ok' },
  { name: 'inbox', column: 'inbox_waiting', unit: '', source: 'db1_ok' },
  { name: 'calls', column: 'calls_per_sec', unit: '/s', source: 'db2_ok' },
];

export function historyPage(history: SampleHistory, paint: Paint, width = terminalWidth()): string {
  const cells = Math.max(NARROWEST, Math.min(WIDEST, width - BESIDE));
  const away = history.databases.filter(({ ok }) => !ok).map(({ name }) => name);
  const rows =
    history.part === null
      ? LINES.map((line) => lineOf(history, history.columns, history.rows, line, cells))
      : history.part.columns.slice(1).map((column) =>
          lineOf(
            history,
            history.part?.columns ?? [],
            history.part?.rows ?? [],
            {
              name: column.replaceAll('_', ' ').replace(/ sec$| per sec$/, ''),
              column,
              unit:
                column.endsWith('_per_sec') || column === 'per_sec'
                  ? '/s'
                  : column.endsWith('_sec')
                    ? ' s'
                    : '',
              source: 'db1_ok',
            },
            cells,
          ),
        );
  return [
    `${toTheSecond(history.from)} to ${toTheSecond(history.to)}, a bar is ${barText(history, cells)}`,
    ...(away.length > 0
      ? [paint('red', `${away.join(', ')} does not answer now: its numbers are missing`)]
      : []),
    '',
    formatTable(['', 'LAST', 'MOST', ''], rows, Number.POSITIVE_INFINITY),
    '',
    ...marksText(history, paint),
  ].join('\n');
}

type Rows = SampleHistory['rows'];

function lineOf(
  { from, to, columns, rows: base }: SampleHistory,
  own: readonly string[],
  rows: Rows,
  { name, column, unit, source }: Line,
  cells: number,
): string[] {
  const [fromMs, toMs] = [Date.parse(from), Date.parse(to)];
  const index = own.indexOf(column);
  const okIndex = columns.indexOf(source);
  const most: (number | undefined)[] = Array.from({ length: cells }, () => undefined);
  const isOut: boolean[] = Array.from({ length: cells }, () => false);
  const cellOf = (at: unknown): number =>
    Math.min(cells - 1, Math.floor(((Date.parse(String(at)) - fromMs) / (toMs - fromMs)) * cells));
  for (const row of rows) {
    const value = row[index];
    const cell = cellOf(row[0]);
    if (typeof value === 'number') most[cell] = Math.max(most[cell] ?? 0, value);
  }
  for (const row of base) if (row[okIndex] === false) isOut[cellOf(row[0])] = true;
  const top = Math.max(0, ...most.map((value) => value ?? 0));
  const last = rows.at(-1)?.[index];
  const bars = most.map((value, cell) => {
    if (value === undefined) return isOut[cell] ? OUTAGE : GAP;
    return BARS[top === 0 ? 0 : Math.min(BARS.length - 1, Math.floor((value / top) * BARS.length))] ?? GAP;
  });
  return [
    name,
    typeof last === 'number' ? `${shortNumber(last)}${unit}` : '-',
    most.some((value) => value !== undefined) ? `${shortNumber(top)}${unit}` : '-',
    bars.join('').trimEnd(),
  ];
}

function shortNumber(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en-US') : String(Math.round(value * 100) / 100);
}

function barText({ from, to }: SampleHistory, cells: number): string {
  const sec = (Date.parse(to) - Date.parse(from)) / 1_000 / cells;
  return sec < 120
    ? `${Math.round(sec)} s`
    : sec < 7_200
      ? `${Math.round(sec / 60)} min`
      : `${Math.round(sec / 3_600)} h`;
}

function marksText({ marks }: SampleHistory, paint: Paint): string[] {
  if (marks.length === 0) return ['nothing else happened'];
  const lines = marks.slice(0, MOST_MARKS).map((mark) => markLine(mark, paint));
  const left = marks.length - lines.length;
  return [...lines, ...(left > 0 ? [`and ${left} before; --json has them all`] : [])];
}

function markLine(mark: Mark, paint: Paint): string {
  const lasted = mark.ended_at === null ? 'goes on' : lastedText(mark.began_at, mark.ended_at);
  const line = [toTheSecond(mark.began_at), mark.kind.padEnd(8), markText(mark), lasted]
    .filter(Boolean)
    .join('  ');
  return mark.kind === 'outage' || mark.ended_at === null ? paint('red', line) : line;
}

function lastedText(began: string, ended: string): string {
  const sec = Math.round((Date.parse(ended) - Date.parse(began)) / 1_000);
  if (sec < 2) return '';
  return sec < 120
    ? `for ${sec} s`
    : sec < 7_200
      ? `for ${Math.round(sec / 60)} min`
      : `for ${Math.round(sec / 3_600)} h`;
}
