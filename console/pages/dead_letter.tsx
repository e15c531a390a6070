import { LETTER_ACTS } from '../lib/acts.ts';
import { get } from '../lib/api.ts';
import { poolPlace, searchPlace } from '../lib/links.ts';
import { useLoad } from '../lib/load.ts';
import { go, Link } from '../lib/router.tsx';
import type { DeadLetter as Letter } from '../lib/shapes.ts';
import { ActButtons } from '../parts/bench.tsx';
import { asJson, Card, Chip, Code, Facts, Id, Moment, PageHead, User } from '../parts/small.tsx';
import { Await } from '../parts/states.tsx';

/** What the bridge writes in front of the last error when the attempts are used up. */
const USED_UP = /^max_retries(: )?/;

/** Why a claim became a dead letter. */
export function Reason({ reason }: { reason: string }) {
  const error = reason.replace(USED_UP, '');
  return (
    <div class="note">
      <strong class="verdict">{error || 'no attempt came to an end'}</strong>
      {USED_UP.test(reason) && <span class="muted"> all attempts are used up</span>}
    </div>
  );
}

export function DeadLetter({ parameter }: { parameter: string }) {
  const loaded = useLoad(`letter ${parameter}`, () => get<Letter>(`/admin/dlq/${parameter}`));
  return (
    <>
      <PageHead title={`Dead letter #${parameter}`}>
        {loaded.value && (
          <ActButtons
            acts={LETTER_ACTS}
            id={parameter}
            onDone={(isAll) => (isAll ? go('/dead-letters') : loaded.reload())}
          />
        )}
      </PageHead>
      <Await loaded={loaded}>
        {(letter) => (
          <div class="columns">
            <Card title="What went wrong">
              <Reason reason={letter.reason} />
              <h3>Payload</h3>
              <Code text={asJson(letter.message)} label="Payload" />
            </Card>
            <Card title="The claim">
              <Facts
                facts={[
                  ['State', letter.claim_state && <Chip key="state" state={letter.claim_state} />],
                  ['Ending', letter.ending ? 'yes' : null],
                  [
                    'Claim',
                    letter.claim_id && (
                      <Link key="claim" to={`/claims/${letter.claim_id}`}>
                        <Id value={letter.claim_id} />
                      </Link>
                    ),
                  ],
                  [
                    'Pool',
                    letter.pool_id && (
                      <Link key="pool" to={poolPlace(letter.pool_id)}>
                        {letter.pool_id}
                      </Link>
                    ),
                  ],
                  ['User', letter.user_id && <User key="user" id={letter.user_id} />],
                  [
                    'Slot',
                    letter.resource_id && (
                      <Id key="slot" value={letter.resource_id} to={searchPlace(letter.resource_id)} />
                    ),
                  ],
                  ['Dead since', <Moment key="since" at={letter.dead_since} />],
                  ['Deliveries', letter.final_read_ct],
                  [
                    'Was message',
                    letter.original_msg_id && <Id key="message" value={letter.original_msg_id} />,
                  ],
                ]}
              />
            </Card>
          </div>
        )}
      </Await>
    </>
  );
}
