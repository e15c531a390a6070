// What a search found, in words.

import { words } from '../lib/format.ts';
import type { Found, Kind } from '../lib/shapes.ts';
import { Chip, Id, Moment } from './small.tsx';

export const KIND_NAMES: Readonly<Record<Kind, string>> = {
  claim: 'Claims',
  order: 'Orders',
  ticket: 'Tickets',
  payment: 'Payments',
  refund: 'Refunds',
  event: 'Events',
  call: 'Calls',
  issue: 'Issues',
  dead_letter: 'Dead letters',
  message: 'Messages',
  slot: 'Slots',
  user: 'Users',
  pool: 'Pools',
  endpoint: 'Webhook endpoints',
  site: 'Call sites',
  operator: 'Operators',
  audit: 'Audit log',
};

/** What a person knows it by: of an event, an endpoint and an issue that is not our own id. */
function nameOf({ kind, id, ref }: Found): string {
  if ((kind === 'event' || kind === 'endpoint' || kind === 'issue') && ref !== null) return ref;
  return kind === 'dead_letter' || kind === 'message' || kind === 'audit' ? `#${id}` : id;
}

export function FoundLine({ found }: { found: Found }) {
  const { kind, ref, pool_id, user_id, state, at, why, cell } = found;
  const about = [
    kind === 'audit' ? ref : null,
    kind === 'pool' ? null : pool_id,
    kind === 'user' ? null : user_id,
    cell,
  ];
  return (
    <>
      <span class="found-name">
        <Id value={nameOf(found)} />
        {state !== null && (kind === 'audit' ? <span>{words(state)}</span> : <Chip state={state} />)}
      </span>
      <span class="found-about muted">
        {about.filter(Boolean).join(' · ')}
        {why !== 'id' && why !== 'name' && why !== 'number' && ` · by its ${why}`}
        {at !== null && (
          <>
            {' '}
            <Moment at={at} />
          </>
        )}
      </span>
    </>
  );
}

export function Away({ names }: { names: readonly string[] }) {
  if (names.length === 0) return null;
  return (
    <p class="found-away" role="status">
      {names.join(' and ')} could not be asked: what only {names.length === 1 ? 'it knows' : 'they know'} is
      missing here.
    </p>
  );
}
