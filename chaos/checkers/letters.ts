// I12: a healthy message is never dead-lettered because something else was down. What may stand in the dead letters is
// known beforehand: what was made to end there, and what a target refused for good.

import type { History, Letter } from '../history.ts';
import { type Checker, type FinalEvent, refusedByTarget } from './lookup.ts';

/** What the operator does to events, and to dead letters only (clients/operator.ts). */
const EVENT_ACTIONS: ReadonlySet<string> = new Set(['webhook_replay', 'webhook_skip']);

export const onlyTheHopelessDie: Checker = (history) => [
  ...deadThoughHealthy(history),
  ...aliveThoughHopeless(history),
];

const doomedPools = ({ pools }: History): Set<string | null> =>
  new Set(pools.filter((pool) => pool.neverCommits).map((pool) => pool.poolId));

function deadThoughHealthy(history: History): string[] {
  const { poison, final } = history;
  const hopeless = new Set(poison);
  const doomed = doomedPools(history);
  const refused = refusedByTarget(history, 'commit');
  const isHealthy = ({ identity, claimId, poolId }: Letter): boolean =>
    !hopeless.has(identity ?? '') && !doomed.has(poolId) && !refused.has(claimId ?? identity ?? '');
  return [
    ...[...final.deadLetters, ...final.archivedLetters]
      .filter(isHealthy)
      .map(({ msgId, identity, reason }) => `dead letter ${msgId} is of healthy ${identity}: ${reason}`),
    ...deadEvents(history)
      .filter(({ eventId }) => !hopeless.has(eventId))
      .map(
        ({ eventId, status, error }) => `event ${eventId} was healthy and a dead letter: ${status}, ${error}`,
      ),
    // Of paid orders, none of whose events is hopeless: those that operators skipped were dead letters.
    ...(history.paid?.final.events ?? [])
      .filter(({ status, skippedBy }) => status === 'dead_letter' || skippedBy !== null)
      .map(
        ({ eventId, status, error }) => `event ${eventId} was healthy and a dead letter: ${status}, ${error}`,
      ),
  ];
}

/** A row says only what became of an event in the end; the operator names none that was not listed as a dead letter. */
function deadEvents({ operatorActions, final }: History): FinalEvent[] {
  const named = new Set(
    operatorActions.filter(({ action }) => EVENT_ACTIONS.has(action)).flatMap(({ ids }) => ids),
  );
  return final.events.filter(({ id, status }) => status === 'dead_letter' || named.has(id));
}

/** The other way round: what cannot succeed must not be seen to have, nor vanish. */
function aliveThoughHopeless(history: History): string[] {
  const { poison, final, events } = history;
  const doomed = doomedPools(history);
  const messages = [...final.deadLetters, ...final.archivedLetters, ...final.queued];
  const there = new Set(messages.map((message) => message.identity));
  const rows = new Map(final.events.map((event) => [event.eventId, event]));
  const sent = new Set(events.map((event) => event.eventId));
  return [
    ...poison
      .filter((id) => !sent.has(id) && !there.has(id))
      .map((id) => `message ${id} can only end as a dead letter and is none`),
    ...poison
      .filter((id) => rows.get(id)?.status === 'success')
      .map((id) => `event ${id} can only end as a dead letter and succeeded`),
    ...final.claims
      .filter(({ poolId, state }) => doomed.has(poolId) && state === 'committed')
      .map(({ claimId }) => `claim ${claimId} can only end as a dead letter and is committed`),
  ];
}
