import { useState } from 'preact/hooks';
import { Rosette } from './rosette.tsx';
import type { Claim } from './store.ts';
import { moment, nameOf, shortCode } from './text.ts';

const COPIED_MS = 2_000;

/** The ticket, once the ledger has it. */
export function Ticket({ pool, claim }: { pool: string; claim: Claim }) {
  return (
    <article class="ticket" aria-label={`Ticket for ${nameOf(pool)}`}>
      <div class="ticket-front">
        <Rosette text={claim.claim_id} />
        <p class="ticket-kind">Admit one</p>
        <p class="ticket-name">{nameOf(pool)}</p>
        <p class="ticket-seat">
          <span class="label">Seat</span>
          <span class="code">{shortCode(claim.resource_id)}</span>
        </p>
      </div>
      <dl class="ticket-stub">
        <Line name="Claim" value={claim.claim_id} isCode />
        <Line name="Seat id" value={claim.resource_id} isCode />
        <Line name="Holder" value={claim.user_id} isCode />
        <Line name="Claimed" value={moment(claim.claimed_at)} />
      </dl>
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
