import { get } from '../lib/api.ts';
import { plural } from '../lib/format.ts';
import { useLoad } from '../lib/load.ts';
import { Link } from '../lib/router.tsx';
import type { ClaimRecord, TimelineEvent } from '../lib/shapes.ts';
import { Card, Facts, Id, Moment, PageHead } from '../parts/small.tsx';
import { Await } from '../parts/states.tsx';
import { type Step, Timeline } from '../parts/timeline.tsx';

const TONES: Readonly<Record<string, Step['tone']>> = {
  committed: 'good',
  dead_letter: 'bad',
  refused: 'bad',
  queued: 'wait',
  ending: 'wait',
  ledger_unreachable: 'wait',
};

/** What operators did, in words for a reader who follows a claim. */
const NAMES: Readonly<Record<string, string>> = {
  dead_letter_replay: 'replayed by an operator',
  dead_letter_discard: 'discarded by an operator',
  claim_release: 'given back by an operator',
  // As older versions wrote them; an import takes the audit log along as it is.
  dlq_replay: 'replayed by an operator',
  dlq_discard: 'discarded by an operator',
};

const NOTES: Readonly<Record<string, string>> = {
  ending: 'A worker may still carry it, so the ledger is told first. It holds its slot until then.',
  ledger_unreachable: 'The ledger does not answer, so the ticket is unknown right now.',
};

/** Without what stands beside it already. */
function stepOf({ at, what, detail }: TimelineEvent, claim: ClaimRecord): Step {
  const known: Readonly<Record<string, unknown>> = { ...claim };
  const news = Object.entries(detail).filter(([name, value]) => known[name] !== value);
  const tone = TONES[what];
  return {
    at,
    what: NAMES[what] ?? what,
    detail: Object.fromEntries(news),
    note: NOTES[what],
    ...(tone && { tone }),
  };
}

export function Claim({ parameter }: { parameter: string }) {
  const loaded = useLoad(`claim ${parameter}`, () =>
    get<{ claim: ClaimRecord; timeline: TimelineEvent[] }>(`/admin/claims/${parameter}`),
  );
  return (
    <>
      <PageHead title="Claim" state={loaded.value?.claim.state} about={<Id value={parameter} />}>
        <button type="button" class="button" onClick={loaded.reload}>
          Refresh
        </button>
      </PageHead>
      <Await loaded={loaded}>
        {({ claim, timeline }) => (
          <div class="columns">
            <Card title="From the request to the ledger">
              <Timeline steps={timeline.map((event) => stepOf(event, claim))} />
            </Card>
            <Card title="The claim">
              <Facts
                facts={[
                  [
                    'User',
                    <Link key="user" to={`/claims?user_id=${encodeURIComponent(claim.user_id)}`}>
                      {claim.user_id}
                    </Link>,
                  ],
                  ['Vouched for by a token', claim.verified ? 'yes' : 'no'],
                  [
                    'Pool',
                    <Link key="pool" to={`/pools/${encodeURIComponent(claim.pool_id)}`}>
                      {claim.pool_id}
                    </Link>,
                  ],
                  [
                    'Order',
                    claim.order && (
                      <Link key="order" to={`/orders/${claim.order.order_id}`}>
                        Order of {plural(claim.order.seats, 'seat')}
                      </Link>
                    ),
                  ],
                  ['Slot', <Id key="slot" value={claim.resource_id} />],
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
        )}
      </Await>
    </>
  );
}
