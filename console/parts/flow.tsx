// The way of a claim through the product, as it is at this moment: doors, queue, gate, ledger.

import { count, duration, rate, UNKNOWN } from '../lib/format.ts';
import type { Point } from '../lib/live.ts';
import type { LiveSample } from '../lib/shapes.ts';

/** Faster than this the eye sees no difference. */
const FASTEST_SEC = 0.5;
const SLOWEST_SEC = 4;

function Pipe({ perSec, label, isShut = false }: { perSec: number | null; label: string; isShut?: boolean }) {
  const isFlowing = !isShut && (perSec ?? 0) > 0;
  const seconds = Math.max(FASTEST_SEC, SLOWEST_SEC / Math.log10(10 + (perSec ?? 0)));
  return (
    <div class={`pipe ${isFlowing ? 'pipe-flows' : ''} ${isShut ? 'pipe-shut' : ''}`}>
      <span class="pipe-rate">{isShut ? 'shut' : perSec === null ? UNKNOWN : `${rate(perSec)}/s`}</span>
      <span class="pipe-water" style={{ animationDuration: `${seconds.toFixed(2)}s` }} />
      <span class="pipe-label">{label}</span>
    </div>
  );
}

function Station({
  title,
  value,
  about,
  isDown = false,
}: {
  title: string;
  value: string;
  about: string;
  isDown?: boolean;
}) {
  return (
    <div class={`station ${isDown ? 'station-down' : ''}`}>
      <span class="station-title">{title}</span>
      <strong class="station-value">{value}</strong>
      <span class="station-about">{about}</span>
    </div>
  );
}

function aboutQueue({ queue_depth, oldest_msg_sec }: Point): string {
  if (queue_depth === null) return 'not known';
  return queue_depth === 0 ? 'nothing waits' : `waiting, oldest ${duration(oldest_msg_sec)}`;
}

const answersIn = (seen: { ms: number } | undefined): string => (seen ? ` · ${count(seen.ms)} ms` : '');

/** `point` may be from the history, before the first sample is there. */
export function Flow({ point, sample }: { point: Point | undefined; sample: LiveSample | undefined }) {
  const isIntakeDown = point?.db1_ok === false;
  const isLedgerDown = point?.db2_ok === false;
  return (
    <section class="flow" aria-label="The way of a claim, now">
      <Station
        title="Intake · DB1"
        value={isIntakeDown ? 'down' : count(point?.claims_total)}
        about={isIntakeDown ? 'does not answer' : `taken in all${answersIn(sample?.db1)}`}
        isDown={isIntakeDown}
      />
      <Pipe perSec={point?.claims_per_sec ?? null} label="claims" isShut={isIntakeDown} />
      <Station
        title="Queue"
        value={count(point?.queue_depth)}
        about={point ? aboutQueue(point) : 'not known'}
        isDown={isIntakeDown}
      />
      <Pipe perSec={point?.drain_per_sec ?? null} label="drained" isShut={isLedgerDown || isIntakeDown} />
      <Station
        title="Ledger · DB2"
        value={isLedgerDown ? 'down' : count(point?.ledger_total)}
        about={isLedgerDown ? 'does not answer' : `tickets${answersIn(sample?.db2)}`}
        isDown={isLedgerDown}
      />
    </section>
  );
}
