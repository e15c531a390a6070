// What commands show in a terminal: tables, as wide as their contents and cut where the terminal ends, and colour.

/** A pipe gets everything: nothing is cut. */
const NO_LIMIT = Number.POSITIVE_INFINITY;
const GAP = '  ';
const ELLIPSIS = '…';
/** A column is not cut below this. */
const NARROWEST = 8;

export function terminalWidth(): number {
  return process.stdout.isTTY ? process.stdout.columns || 80 : NO_LIMIT;
}

/** The widest columns give way first when the rows do not fit. */
export function formatTable(header: string[], rows: string[][], width = terminalWidth()): string {
  const lines = [header, ...rows].map((cells) => cells.map(oneLine));
  const widths = header.map((_, column) => Math.max(...lines.map((cells) => cells[column]?.length ?? 0)));
  const available = width - GAP.length * (widths.length - 1);
  while (widths.reduce((sum, w) => sum + w, 0) > available) {
    const widest = Math.max(...widths);
    if (widest <= NARROWEST) break;
    widths[widths.indexOf(widest)] = widest - 1;
  }
  return lines
    .map((cells) =>
      cells
        .map((cell, column) => fit(cell, widths[column] ?? 0))
        .join(GAP)
        .trimEnd(),
    )
    .join('\n');
}

function fit(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, width - 1)}${ELLIPSIS}` : text.padEnd(width);
}

/** Text from outside must not move the reader's cursor. */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ');
}

/** A moment as a table shows it. */
export const toTheSecond = (moment: string): string => moment.replace(/\.\d+/, '');

type Terminal = Pick<NodeJS.WriteStream, 'isTTY'>;

const CODES = { green: 32, yellow: 33, red: 31, dim: 2 } as const;
const RESET = '\u001b[0m';

export type Paint = (colour: keyof typeof CODES, text: string) => string;

/** A pipe, NO_COLOR with any value but the empty one, and TERM=dumb get plain text. */
export function createPaint(terminal: Terminal = process.stdout, env = process.env): Paint {
  const isPlain = !terminal.isTTY || Boolean(env.NO_COLOR) || env.TERM === 'dumb';
  return (colour, text) => (isPlain ? text : `\u001b[${CODES[colour]}m${text}${RESET}`);
}
