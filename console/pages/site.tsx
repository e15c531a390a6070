// One call site: its settings, its secrets by name, and what an admin does with them.

import { get, pathWith } from '../lib/api.ts';
import { changedOf, wordsIn } from '../lib/changes.ts';
import { siteAudit } from '../lib/links.ts';
import { useLoad } from '../lib/load.ts';
import { Link } from '../lib/router.tsx';
import { siteCalls } from '../lib/senders.ts';
import type { SiteView } from '../lib/shapes.ts';
import { Check, Choice, Field } from '../parts/fields.tsx';
import { May } from '../parts/may.tsx';
import { SecretFault } from '../parts/secret_fault.tsx';
import {
  ON_OUTAGE,
  Secrets,
  type SenderActs,
  SenderButtons,
  SenderSettings,
  stateOf,
} from '../parts/sender.tsx';
import { Card, Facts, Moment, PageHead } from '../parts/small.tsx';
import { Await } from '../parts/states.tsx';
import { KINDS_HINT, UNSIGNED } from './sites.tsx';

const CHANGE = 'POST /admin/sites/:site';

/** `unsigned` is asked for, and require_signature is what the server knows. */
function changesOf(form: HTMLFormElement): Record<string, unknown> {
  const data = new FormData(form);
  const kinds = wordsIn(String(data.get('kinds') ?? ''));
  const { unsigned, ...changes } = changedOf(form, {
    kinds: kinds.length === 0 ? null : kinds,
    on_outage: data.get('on_outage'),
    unsigned: data.has('unsigned'),
  });
  return { ...changes, ...(unsigned !== undefined && { require_signature: !unsigned }) };
}

function Settings({ site, acts }: { site: SiteView; acts: SenderActs }) {
  return (
    <SenderSettings {...acts} do={CHANGE} changesOf={changesOf}>
      <div class="fields">
        <Field name="kinds" label="Kinds" value={site.kinds?.join(', ') ?? ''} hint={KINDS_HINT} />
        <Choice
          name="on_outage"
          label="Calls while the ledger is away"
          options={ON_OUTAGE}
          value={site.on_outage}
          hint="What is accepted is recorded when the ledger is back."
        />
      </div>
      <Check name="unsigned" label={UNSIGNED} isChecked={!site.require_signature} />
      <p class="hint">Sluice does not recognise the second delivery of a call without a signature.</p>
    </SenderSettings>
  );
}

export function Site({ parameter: id }: { parameter: string }) {
  const loaded = useLoad(`site ${id}`, () => get<SiteView>(`/admin/sites/${encodeURIComponent(id)}`));
  const site = loaded.value;
  const actsOn = (found: SiteView): SenderActs => ({
    sender: { ...found, name: id },
    audit: siteAudit(id),
    calls: siteCalls(id),
    onDone: loaded.reload,
  });
  return (
    <>
      <PageHead title={id} state={site && stateOf(site.is_active, site.secret_fault)} about="Call site">
        <Link class="button" to={pathWith('/calls', { site_id: id })}>
          Calls
        </Link>
        {site && (
          <May do={CHANGE}>
            <SenderButtons {...actsOn(site)} />
          </May>
        )}
      </PageHead>
      <Await loaded={loaded}>
        {(found) => (
          <>
            <SecretFault fault={found.secret_fault}>The site has to send it again.</SecretFault>
            <Card title="The call site">
              <Facts
                facts={[
                  [
                    'Secrets',
                    <Secrets key="secrets" names={found.secret_names} fault={found.secret_fault} />,
                  ],
                  ['Signature', found.require_signature ? 'required' : 'not required'],
                  ['Added', <Moment key="added" at={found.created_at} />],
                  [
                    'What was done',
                    <Link key="audit" to={siteAudit(id)}>
                      Audit rows
                    </Link>,
                  ],
                ]}
              />
            </Card>
            <Settings key={JSON.stringify(found)} site={found} acts={actsOn(found)} />
          </>
        )}
      </Await>
    </>
  );
}
