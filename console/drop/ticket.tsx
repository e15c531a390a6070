import { useState } from 'preact/hooks';
import { seatName } from '../../db1/supabase/functions/_shared/tickets/words.ts';
import { Rosette } from './rosette.tsx';
import type { Claim, Seat } from './store.ts';
import { moment } from './text.ts';

const COPIED_MS = 2_000;

/** A ticket, once the ledger has it. */
export function Ticket({ name, seat, claim }: { name: string; seat: Seat; claim: Claim }) {
  const called = seatName(seat.label, seat.resource_id);
  return (
    <article class="ticket" aria-label={`Ticket for ${name}, seat ${called}`}>
      <div class="ticket-front">
        <Rosette text={seat.claim_id} />
        <p class="ticket-kind">Admit one</p>
        <p class="ticket-name">{name}</p>
        <p class="ticket-seat">
          <span class="label">Seat</span>
          <span class="code">{called}</span>
        </p>
      </div>
      <div class="ticket-stub">
        <dl>
          <Line name="Claim" value={seat.claim_id} isCode />
          <Line name="Seat id" value={seat.resource_id} isCode />
          <Line name="Holder" value={claim.user_id} isCode />
          <Line name="Claimed" value={moment(claim.claimed_at)} />
        </dl>
        {seat.ticket_url !== undefined && (
          <a class="quiet" href={seat.ticket_url}>
            Open the ticket for {called}
          </a>
        )}
      </div>
    </article>
  );
}

function Line({ name, value, isCode = false }: { name: string; value: string; isCode?: boolean }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd class={isCode ? 'code' : undefined}>{value}</dd>
    </div>
  );
}

export function CopyButton({ text, children }: { text: string; children: string }) {
  const [isCopied, setCopied] = useState(false);
  // A page over plain http has no clipboard; the id can still be selected.
  if (!navigator.clipboard) return null;
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), COPIED_MS);
  };
  return (
    <button type="button" class="quiet" onClick={() => void copy()}>
      <span role="status">{isCopied ? 'Copied' : children}</span>
    </button>
  );
}
