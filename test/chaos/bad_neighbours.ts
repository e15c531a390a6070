// What the checker of I13 must reject: a healthy one that suffers beside a neighbour.

import type { HealthyCall, History } from '../../chaos/history.ts';
import { type BadHistory, bad } from './bad_history.ts';

/** Quiet until the storm of the good history begins; then its other faults, and long after them a neighbour. */
export const QUIET_AT = 1_000;
export const NEIGHBOUR = { name: 'neighbour-slow-hook', target: 'commit' };
export const FROM = 40_000;
export const TO = 50_000;
/** As many as a p99 needs, and half as many again. */
export const REQUESTS = 150;

/** Evenly over the time; answered after 10 ms, carried after 40. */
export function healthyCalls(
  from: number,
  to: number,
  change: (call: HealthyCall, turn: number) => Partial<HealthyCall> = () => ({}),
  requests = REQUESTS,
): HealthyCall[] {
  return (['claim', 'event'] as const).flatMap((kind) =>
    Array.from({ length: requests }, (_, turn) => {
      const at = Math.floor(from + ((to - from) * turn) / requests);
      const id = `${kind} ${from} ${turn}`;
      const call: HealthyCall = {
        ...{ kind, id, at, answer: 'done', answeredAt: at + 10, carriedAt: at + 40 },
      };
      return { ...call, ...change(call, turn) };
    }),
  );
}

/** Adds a neighbour, and a healthy one beside it that met what `change` says. */
export function addNeighbour(
  history: History,
  change?: Parameters<typeof healthyCalls>[2],
  name = NEIGHBOUR.name,
): void {
  history.quietAt = QUIET_AT;
  history.faults.push({ ...NEIGHBOUR, name, startedAt: FROM, healedAt: TO, recoveredAt: TO });
  history.healthy.push(...healthyCalls(QUIET_AT, history.stormAt), ...healthyCalls(FROM, TO, change));
}

const late = (ms: number) => (call: HealthyCall, turn: number) =>
  turn % 50 === 0 ? { carriedAt: call.at + ms } : {};

export const BAD_NEIGHBOURS: BadHistory[] = [
  bad('I13', 'tickets and effects that come late beside a slow hook', [], (history) => {
    addNeighbour(history, late(251));
  }),
  bad('I13', 'answers that come late beside a flood', [], (history) => {
    addNeighbour(history, ({ at }) => ({ answeredAt: at + 300, carriedAt: at + 300 }), 'neighbour-flood');
  }),
  bad('I13', 'one healthy claim of many that failed', [], (history) => {
    addNeighbour(history, ({ kind }, turn) =>
      kind === 'claim' && turn === 7 ? { answer: '503 busy', carriedAt: null } : {},
    );
  }),
  bad('I13', 'a healthy claim that never became a ticket beside killed workers', [], (history) => {
    addNeighbour(
      history,
      ({ kind }, turn) => (kind === 'claim' && turn === 7 ? { carriedAt: null } : {}),
      'neighbour-killed-workers',
    );
  }),
  bad('I13', 'one that still waits for its ticket when the neighbour is healed', [], (history) => {
    addNeighbour(history, ({ at }) => (at >= TO - 2_000 ? { carriedAt: TO + 60_000 } : {}));
  }),
];
