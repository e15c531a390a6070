// The seats of an order, and an operator who takes some of them back.

import { useState } from 'preact/hooks';
import { VOID, VOIDABLE } from '../lib/acts.ts';
import { ticketPlace } from '../lib/links.ts';
import { Link } from '../lib/router.tsx';
import type { OrderClaim, OrderView } from '../lib/shapes.ts';
import { ActDialog } from '../parts/act_dialog.tsx';
import { useMay } from '../parts/may.tsx';
import { Chip, Id, Moment } from '../parts/small.tsx';
import { type Column, Table } from '../parts/table.tsx';

function ticketOf({ is_ledger_known, tickets, voided }: OrderView, { claim_id }: OrderClaim): string {
  if (!is_ledger_known) return 'not known';
  if (voided.some((ticket) => ticket.claim_id === claim_id)) return 'void';
  const ticket = tickets.find((one) => one.claim_id === claim_id);
  if (ticket === undefined) return 'none';
  return ticket.used_at === null ? 'valid' : 'used';
}

const columnsOf = (view: OrderView): Column<OrderClaim>[] => [
  {
    head: 'Seat',
    place: 'title',
    cell: ({ claim_id, label, resource_id }) => (
      <Link class="row-link" to={`/claims/${claim_id}`}>
        {label ?? <Id value={resource_id} isShort />}
      </Link>
    ),
  },
  { head: 'State', place: 'corner', cell: ({ state }) => <Chip state={state} /> },
  {
    head: 'Ticket',
    cell: (claim) => {
      const ticket = ticketOf(view, claim);
      return ticket === 'none' || ticket === 'not known' ? (
        ticket
      ) : (
        <Link to={ticketPlace(claim.claim_id)}>{ticket}</Link>
      );
    },
  },
  { head: 'Claimed', cell: ({ claimed_at }) => <Moment at={claimed_at} /> },
  { head: 'Ended', cell: ({ ended_at }) => <Moment at={ended_at} /> },
];

export function Seats({ view, onDone }: { view: OrderView; onDone(): void }) {
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const [asked, setAsked] = useState<readonly string[]>();
  const mayVoid = useMay(VOID.route);
  const voidable = view.claims.filter(({ state }) => VOIDABLE.has(state)).map(({ claim_id }) => claim_id);
  const ids = voidable.filter((id) => picked.has(id));
  const canVoid = mayVoid && voidable.length > 0;
  return (
    <section aria-labelledby="seats">
      <h2 id="seats">Seats</h2>
      {canVoid && (
        <div class={ids.length > 0 ? 'workbar workbar-active' : 'workbar'}>
          <span role="status">
            {ids.length > 0 ? `${ids.length} selected` : 'Select seats to void their tickets.'}
          </span>
          {ids.length > 0 && (
            <span class="workbar-acts">
              <button type="button" class="button button-danger" onClick={() => setAsked(ids)}>
                Void…
              </button>
            </span>
          )}
        </div>
      )}
      <Table
        caption="Seats of the order"
        rows={view.claims}
        columns={columnsOf(view)}
        keyOf={({ claim_id }) => claim_id}
        nameOf={({ label, claim_id }) => `seat ${label ?? claim_id}`}
        selection={canVoid ? { ids: picked, set: setPicked } : undefined}
      />
      {asked && <ActDialog act={VOID} ids={asked} onClose={() => setAsked(undefined)} onDone={onDone} />}
    </section>
  );
}
