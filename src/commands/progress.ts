// How far a long command has come, for eyes only: a pipe gets the report and nothing else.

const BAR_WIDTH = 30;
const MS_PER_SEC = 1_000;
/** Redrawn at most so often: a terminal over a slow line must not hold up the work. */
const REDRAW_MS = 100;

export interface Progress {
  advance(count: number): void;
  /** Leaves the last state on the screen. */
  end(): void;
}

type Terminal = Pick<NodeJS.WriteStream, 'write' | 'isTTY'>;

/** `total` is undefined where it is not known beforehand. */
export function startProgress(
  total: number | undefined,
  what: string,
  terminal: Terminal = process.stderr,
  now: () => number = Date.now,
): Progress {
  const startedAt = now();
  let done = 0;
  let drawnAt = Number.NEGATIVE_INFINITY;
  const draw = (end: string): void => {
    if (!terminal.isTTY || total === 0) return;
    drawnAt = now();
    terminal.write(`\r${progressLine(done, total, what, (drawnAt - startedAt) / MS_PER_SEC)}\u001b[K${end}`);
  };
  return {
    advance(count) {
      done += count;
      if (now() - drawnAt >= REDRAW_MS) draw('');
    },
    end: () => draw('\n'),
  };
}

export function progressLine(
  done: number,
  total: number | undefined,
  what: string,
  elapsedSec: number,
): string {
  if (total === undefined)
    return `${done} ${what}${elapsedSec > 0 ? `, ${Math.round(done / elapsedSec)}/s` : ''}`;
  const share = Math.min(1, done / total);
  const bar = '#'.repeat(Math.round(share * BAR_WIDTH)).padEnd(BAR_WIDTH, '.');
  const rate = elapsedSec > 0 ? done / elapsedSec : 0;
  const left = rate > 0 && done < total ? `, ${Math.ceil((total - done) / rate)} s left` : '';
  const speed = rate > 0 ? `, ${Math.round(rate)}/s` : '';
  return `[${bar}] ${done} of ${total} ${what}${speed}${left}`;
}
