// Lines that are drawn over each other on a terminal, and one line now and then elsewhere.

import { terminalWidth } from '../commands/table.ts';

export interface Progress {
  /** Prints a line of its own, on a terminal and elsewhere. */
  say(line: string): void;
  /** Leaves the last state on the screen. */
  end(): void;
}

const REDRAW_MS = 200;
const PLAIN_EVERY_MS = 2_000;
const UP_AND_CLEAR = '\u001b[1A\u001b[2K';

export const SILENT: Progress = { say: () => undefined, end: () => undefined };

export function drawLines(
  out: Pick<NodeJS.WriteStream, 'write' | 'isTTY'>,
  lines: () => readonly string[],
): Progress {
  let drawn = 0;
  const clear = () => {
    out.write(UP_AND_CLEAR.repeat(drawn));
    drawn = 0;
  };
  const draw = () => {
    if (!out.isTTY) {
      out.write(`${lines().join('; ')}\n`);
      return;
    }
    clear();
    const fitting = lines().map((line) => line.slice(0, terminalWidth() - 1));
    out.write(fitting.map((line) => `${line}\n`).join(''));
    drawn = fitting.length;
  };
  const timer = setInterval(draw, out.isTTY ? REDRAW_MS : PLAIN_EVERY_MS);
  return {
    say(line) {
      clear();
      out.write(`${line}\n`);
    },
    end() {
      clearInterval(timer);
      draw();
    },
  };
}
