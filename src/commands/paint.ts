// Colour, where somebody looks who wants it.

type Terminal = Pick<NodeJS.WriteStream, 'isTTY'>;

const CODES = { green: 32, yellow: 33, red: 31, dim: 2 } as const;
const RESET = '\u001b[0m';

export type Paint = (colour: keyof typeof CODES, text: string) => string;

/** A pipe, NO_COLOR with any value but the empty one, and TERM=dumb get plain text. */
export function createPaint(terminal: Terminal = process.stdout, env = process.env): Paint {
  const isPlain = !terminal.isTTY || Boolean(env.NO_COLOR) || env.TERM === 'dumb';
  return (colour, text) => (isPlain ? text : `\u001b[${CODES[colour]}m${text}${RESET}`);
}
