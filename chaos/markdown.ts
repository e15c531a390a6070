// The little Markdown that the report needs.

export type Cell = string | number;

export function table(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const line = (cells: readonly Cell[]) => `| ${cells.map(cellOf).join(' | ')} |`;
  // Numbers stand to the right, where they can be compared.
  const rule = head.map((_, column) => (rows.every((row) => isNumber(row[column])) ? '---:' : '---'));
  return [line(head), `|${rule.join('|')}|`, ...rows.map(line)].join('\n');
}

const isNumber = (cell: Cell | undefined): boolean =>
  typeof cell === 'number' || /^[\d,.–]+( m?s| %)?$/.test(cell ?? '');

const cellOf = (cell: Cell): string =>
  typeof cell === 'number' ? number(cell) : cell.replaceAll('|', '\\|').replaceAll('\n', ' ');

export const number = (value: number): string => value.toLocaleString('en-US', { maximumFractionDigits: 2 });

/** A duration as people read it. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–';
  return ms < 10_000 ? `${number(Math.round(ms))} ms` : `${number(Math.round(ms / 100) / 10)} s`;
}

/** `0.00012` as `1.2 × 10⁻⁴`. */
export function small(value: number): string {
  if (value === 0 || value >= 0.01) return number(value);
  const exponent = Math.floor(Math.log10(value));
  const digits = [...String(-exponent)].map((digit) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(digit)]).join('');
  return `${number(Math.round((value / 10 ** exponent) * 10) / 10)} × 10⁻${digits}`;
}

/** A history of commands is for its own file; here its beginning is enough. */
const MAX_TEXT_CHARS = 300;

/**
 * A result of another tool as it is: its single values as a list, its lists of records as tables. What it means is that
 * tool's business; this way nothing of it is left out.
 */
export function plain(result: Record<string, unknown>): string {
  const isRecords = (value: unknown): value is Record<string, unknown>[] =>
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((item) => typeof item === 'object' && item !== null);
  const entries = Object.entries(withNames(result));
  const single = entries.filter(([, value]) => !isRecords(value));
  return [
    ...single.map(([name, value]) => `- ${spelled(name)}: ${shortened(textOf(value))}`),
    ...entries.flatMap(([name, value]) => {
      if (!isRecords(value)) return [];
      const columns = [...new Set(value.flatMap((item) => Object.keys(item)))];
      const rows = value.map(withNames).map((item) => columns.map((column) => asCell(item[column])));
      return ['', `${spelled(name)}:`, '', table(columns.map(spelled), rows)];
    }),
  ].join('\n');
}

/** A seed is a name made of digits: it is typed in again as it stands. */
const withNames = (record: Record<string, unknown>): Record<string, unknown> => ({
  ...record,
  ...('seed' in record && { seed: String(record.seed) }),
  ...(Array.isArray(record.seeds) && { seeds: record.seeds.map(String) }),
});
const spelled = (name: string): string =>
  name.replaceAll('_', ' ').replace(/(?<=[a-z])[A-Z]/g, (sign) => ` ${sign.toLowerCase()}`);
const asCell = (value: unknown): Cell => (typeof value === 'number' ? value : shortened(textOf(value)));
const shortened = (text: string): string =>
  text.length <= MAX_TEXT_CHARS ? text : `${text.slice(0, MAX_TEXT_CHARS)} …`;

function textOf(value: unknown): string {
  if (value === undefined || value === null) return '–';
  if (Array.isArray(value) && value.length === 0) return 'none';
  if (typeof value === 'number') return number(value);
  if (Array.isArray(value)) return value.map(textOf).join(', ');
  if (typeof value === 'object')
    return Object.entries(value)
      .map(([name, part]) => `${spelled(name)} ${textOf(part)}`)
      .join(', ');
  return String(value);
}
