import { LETTER_ACTS, RELEASABLE, RELEASE, VOID } from '../lib/acts.ts';
import { get } from '../lib/api.ts';
import { plural } from '../lib/format.ts';
import { searchPlace, ticketPlace } from '../lib/links.ts';
import { useLoad } from '../lib/load.ts';
import { Link } from '../lib/router.tsx';
import type { ClaimRecord, TimelineEvent } from '../lib/shapes.ts';
import { ActButtons } from '../parts/bench.tsx';
import { Card, Facts, holderFacts, Id, Moment, PageHead } from '../parts/small.tsx';
import { Await } from '../parts/states.tsx';
import { letterOf, storySteps } from '../parts/story.ts';
import { Timeline } from '../parts/timeline.tsx';
import { WaitsFor } from '../parts/troubles.tsx';

export function Claim({ parameter }: { parameter: string }) {
  const loaded = useLoad(`claim ${parameter}`, () =>
    get<{ claim: ClaimRecord; timeline: TimelineEvent[] }>(`/admin/claims/${parameter}`),
  );
  const isDead = loaded.value?.claim.state === 'dead_letter' && !loaded.value.claim.ending;
  const letter = loaded.value && letterOf(loaded.value.timeline);
  const canRelease = RELEASABLE.has(loaded.value?.claim.state ?? '') && !loaded.value?.claim.ending;
  return (
    <>
      <PageHead title="Claim" state={loaded.value?.claim.state} about={<Id value={parameter} />}>
        <button type="button" class="button" onClick={loaded.reload}>
          Refresh
        </button>
        {isDead && letter !== undefined && (
          <ActButtons acts={LETTER_ACTS} id={letter} onDone={loaded.reload} />
        )}
        {canRelease && <ActButtons acts={[RELEASE]} id={parameter} onDone={loaded.reload} />}
        {loaded.value?.claim.state === 'committed' && (
          <ActButtons acts={[VOID]} id={parameter} onDone={loaded.reload} />
        )}
      </PageHead>
      <Await loaded={loaded}>
        {({ claim, timeline }) => (
          <>
            <WaitsFor claim={claim} />
            <div class="columns">
              <Card title="From the request to the ledger">
                <Timeline steps={storySteps(timeline, { ...claim })} />
              </Card>
              <Card title="The claim">
                <Facts
                  facts={[
                    ...holderFacts(claim),
                    [
                      'Order',
                      claim.order && (
                        <Link key="order" to={`/orders/${claim.order.order_id}`}>
                          Order of {plural(claim.order.seats, 'seat')}
                        </Link>
                      ),
                    ],
                    [
                      'Ticket',
                      claim.state === 'committed' && (
                        <Link key="ticket" to={ticketPlace(claim.claim_id)}>
                          The ticket in the ledger
                        </Link>
                      ),
                    ],
                    [
                      'Dead letter',
                      isDead && letter !== undefined && (
                        <Link key="letter" to={`/dead-letters/${letter}`}>
                          #{letter}
                        </Link>
                      ),
                    ],
                    ['Slot', <Id key="slot" value={claim.resource_id} to={searchPlace(claim.resource_id)} />],
                    ['Request id', <Id key="request" value={claim.request_id} />],
                    ['Claimed', <Moment key="claimed" at={claim.claimed_at} />],
                    ['Ahead of it', claim.ahead === null ? null : `about ${plural(claim.ahead, 'message')}`],
                    ['Held until', claim.hold_until && <Moment key="hold" at={claim.hold_until} />],
                    ['Ending', claim.ending ? 'yes' : null],
                    ['Ended', claim.ended_at && <Moment key="ended" at={claim.ended_at} />],
                    ['End', claim.end_reason],
                  ]}
                />
              </Card>
            </div>
          </>
        )}
      </Await>
    </>
  );
}
