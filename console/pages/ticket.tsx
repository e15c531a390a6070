import { VOID } from '../lib/acts.ts';
import { get } from '../lib/api.ts';
import { claimPlace, orderPlace, searchPlace } from '../lib/links.ts';
import { useLoad } from '../lib/load.ts';
import type { TicketView } from '../lib/shapes.ts';
import { ActButtons } from '../parts/bench.tsx';
import { Card, Facts, holderFacts, Id, Moment, PageHead } from '../parts/small.tsx';
import { Await } from '../parts/states.tsx';
import { storySteps } from '../parts/story.ts';
import { Timeline } from '../parts/timeline.tsx';

export function Ticket({ parameter }: { parameter: string }) {
  const loaded = useLoad(`ticket ${parameter}`, () =>
    get<TicketView>(`/admin/tickets/${encodeURIComponent(parameter)}`),
  );
  return (
    <>
      <PageHead title="Ticket" state={loaded.value?.ticket.state} about={<Id value={parameter} />}>
        <button type="button" class="button" onClick={loaded.reload}>
          Refresh
        </button>
        {loaded.value && loaded.value.ticket.state !== 'void' && (
          <ActButtons acts={[VOID]} id={loaded.value.ticket.claim_id} onDone={loaded.reload} />
        )}
      </PageHead>
      <Await loaded={loaded}>
        {({ ticket, timeline, is_claim_known }) => (
          <div class="columns">
            <Card title="From the claim to the ticket">
              {!is_claim_known && (
                <p class="muted">The intake does not tell the way of its claim right now.</p>
              )}
              <Timeline steps={storySteps(timeline, { ...ticket })} />
            </Card>
            <Card title="The ticket">
              <Facts
                facts={[
                  ...holderFacts(ticket),
                  ['Claim', <Id key="claim" value={ticket.claim_id} to={claimPlace(ticket.claim_id)} />],
                  [
                    'Order',
                    ticket.order_id && (
                      <Id key="order" value={ticket.order_id} to={orderPlace(ticket.order_id)} />
                    ),
                  ],
                  ['Slot', <Id key="slot" value={ticket.resource_id} to={searchPlace(ticket.resource_id)} />],
                  ['Committed', <Moment key="committed" at={ticket.confirmed_at} />],
                  ['Used', ticket.used_at && <Moment key="used" at={ticket.used_at} />],
                  ['Checked in by', ticket.used_by],
                  ['Void since', ticket.voided_at && <Moment key="void" at={ticket.voided_at} />],
                  ['Why', ticket.cause],
                ]}
              />
            </Card>
          </div>
        )}
      </Await>
    </>
  );
}
