import { get } from '../lib/api.ts';
import { searchPlace } from '../lib/links.ts';
import { useLoad } from '../lib/load.ts';
import { Link } from '../lib/router.tsx';
import type { CallDetails } from '../lib/shapes.ts';
import { asJson, Card, Code, Facts, Id, Moment, PageHead } from '../parts/small.tsx';
import { Await } from '../parts/states.tsx';

export function Call({ parameter }: { parameter: string }) {
  const loaded = useLoad(`call ${parameter}`, () => get<CallDetails>(`/admin/calls/${parameter}`));
  const call = loaded.value;
  return (
    <>
      <PageHead
        title={call?.kind ?? 'Call'}
        state={call && (call.signature_hash === null ? 'unsigned' : 'signed')}
        about={<Id value={parameter} />}
      />
      <Await loaded={loaded}>
        {({ site_id, event_id, occurred_at, received_at, signature_hash, payload }) => (
          <div class="columns">
            <Card title="Payload">
              <Code text={asJson(payload)} label="Payload" />
            </Card>
            <Card title="The call">
              <Facts
                facts={[
                  [
                    'Site',
                    <Link key="site" to={`/calls?site_id=${encodeURIComponent(site_id)}`}>
                      {site_id}
                    </Link>,
                  ],
                  ['Event id', event_id && <Id key="event" value={event_id} to={searchPlace(event_id)} />],
                  ['Happened', <Moment key="occurred" at={occurred_at} />],
                  ['Received', <Moment key="received" at={received_at} />],
                  ['Signature hash', signature_hash && <Id key="hash" value={signature_hash} />],
                ]}
              />
            </Card>
          </div>
        )}
      </Await>
    </>
  );
}
