// The seats of a claim, and giving them back.

import { seatName } from '../../db1/supabase/functions/_shared/tickets/words.ts';
import type { GiveBack } from './purchase.ts';
import type { Seat } from './store.ts';

export function Seats({ seats }: { seats: readonly Seat[] }) {
  return (
    <p class="held-seat">
      <span class="label">{seats.length > 1 ? 'Seats' : 'Seat'}</span>
      {seats.map(({ claim_id, resource_id, label }) => (
        <span key={claim_id} class="code">
          {seatName(label, resource_id)}
        </span>
      ))}
    </p>
  );
}

interface GiveBackProps {
  readonly state: GiveBack;
  readonly isMany: boolean;
  readonly onGiveBack: () => void;
}

export function GiveBackButton({ state, isMany, onGiveBack }: GiveBackProps) {
  const isAsked = state === 'asked';
  const what = isMany ? 'these seats' : 'this seat';
  const ask = () => {
    const question = `Give ${what} back? ${isMany ? 'They go' : 'It goes'} on sale again.`;
    if (!isAsked && confirm(question)) onGiveBack();
  };
  return (
    <>
      <button type="button" class="quiet" aria-disabled={isAsked} onClick={ask}>
        {isAsked ? `Giving ${isMany ? 'them' : 'it'} back…` : `Give ${what} back`}
      </button>
      <p class="lead" role="status">
        {state === 'failed' &&
          `No answer: ${isMany ? 'the seats' : 'the seat'} may still be yours. Try again.`}
        {state === 'refused' && `${isMany ? 'They' : 'It'} cannot be given back any more.`}
      </p>
    </>
  );
}
