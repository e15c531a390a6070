// One endpoint: its settings, its secrets by name, and what an admin does with them.

import { ApiError, pathWith } from '../lib/api.ts';
import { changedOf, wordsIn } from '../lib/changes.ts';
import { endpointAudit } from '../lib/links.ts';
import { listEndpoints } from '../lib/lists.ts';
import { useLoad } from '../lib/load.ts';
import { Link } from '../lib/router.tsx';
import { endpointCalls } from '../lib/senders.ts';
import type { EndpointRow } from '../lib/shapes.ts';
import { Choice, Field, TextField } from '../parts/fields.tsx';
import { May } from '../parts/may.tsx';
import { Meanwhile, SecretFault } from '../parts/secret_fault.tsx';
import {
  ON_OUTAGE,
  SECRET_NAME,
  Secrets,
  type SenderActs,
  SenderButtons,
  SenderSettings,
  stateOf,
} from '../parts/sender.tsx';
import { asJson, Card, Facts, Id, Moment, PageHead } from '../parts/small.tsx';
import { Await } from '../parts/states.tsx';
import { LIVE_MODES, MODES } from './new_endpoint.tsx';

const CHANGE = 'POST /admin/webhooks/endpoints/change';
/** As the API has them. */
const MOST = { max_attempts: 100, backoff_cap_sec: 86_400, lease_sec: 3_600, max_body_bytes: 10_485_760 };
const MOST_DAYS = 36_500;

async function findEndpoint(name: string): Promise<EndpointRow> {
  const found = (await listEndpoints()).items.find((one) => one.name === name);
  if (found !== undefined) return found;
  throw new ApiError(404, 'unknown_endpoint', 'This webhook endpoint does not exist.', 'Check its name.');
}

function settingsOf(form: HTMLFormElement): Record<string, unknown> {
  const data = new FormData(form);
  const text = (name: string): string => String(data.get(name) ?? '').trim();
  const numbers = Object.keys(MOST).map((name) => [name, Number(text(name))]);
  return {
    mode: text('mode'),
    on_outage: text('on_outage'),
    livemode: text('livemode'),
    accounts: wordsIn(text('accounts')),
    public_url: text('public_url') || null,
    verify_token_name: text('verify_token_name') || null,
    api_key_name: text('api_key_name') || null,
    scheme: text('scheme') === '' ? null : schemeOf(text('scheme')),
    keep_payload_days: text('keep_payload_days') === '' ? null : Number(text('keep_payload_days')),
    ...Object.fromEntries(numbers),
  };
}

function schemeOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ApiError(422, 'invalid_input', 'The scheme is not JSON.', 'Nothing was saved.');
  }
}

/** What only some providers need, or what this endpoint has. */
function Particulars({ endpoint }: { endpoint: EndpointRow }) {
  const { provider, livemode, accounts, public_url, verify_token_name, api_key_name } = endpoint;
  const isStripe = provider === 'stripe';
  return (
    <>
      {isStripe && (
        <Choice
          name="livemode"
          label="Events"
          options={LIVE_MODES}
          value={livemode}
          hint="Others are skipped."
        />
      )}
      {(isStripe || provider === 'twilio') && (
        <Field
          name="accounts"
          label="Accounts"
          value={accounts.join(', ')}
          hint={
            isStripe
              ? 'Connected accounts whose events it takes too. Empty: its own alone.'
              : 'The accounts that are asked for gaps.'
          }
        />
      )}
      {(provider === 'twilio' || public_url !== null) && (
        <Field
          name="public_url"
          label="Public address"
          value={public_url ?? ''}
          pattern="https?://.*"
          hint="The address that the provider signs."
        />
      )}
      {(provider === 'whatsapp' || verify_token_name !== null) && (
        <Field
          name="verify_token_name"
          label="Name of the verify token"
          value={verify_token_name ?? ''}
          {...SECRET_NAME}
        />
      )}
      <Field
        name="api_key_name"
        label="Name of the API key"
        value={api_key_name ?? ''}
        pattern={SECRET_NAME.pattern}
        hint="Of the key with which the provider is asked for gaps (backfill), never the key."
      />
    </>
  );
}

function Numbers({ endpoint }: { endpoint: EndpointRow }) {
  const field = (name: keyof typeof MOST, label: string, hint: string) => (
    <Field
      name={name}
      label={label}
      hint={hint}
      type="number"
      isRequired
      min={1}
      max={MOST[name]}
      value={String(endpoint[name])}
    />
  );
  return (
    <>
      {field('max_attempts', 'Attempts', 'Tries before an event is a dead letter.')}
      {field('backoff_cap_sec', 'Longest pause, seconds', 'Between two tries.')}
      {field('lease_sec', 'Lease, seconds', 'How long a worker holds an event.')}
      {field('max_body_bytes', 'Largest body, bytes', 'A larger one is refused.')}
      <Field
        name="keep_payload_days"
        label="Payloads are kept, days"
        type="number"
        min={1}
        max={MOST_DAYS}
        value={endpoint.keep_payload_days?.toString()}
        hint="Empty: as the general retention says."
      />
    </>
  );
}

function Settings({ endpoint, acts }: { endpoint: EndpointRow; acts: SenderActs }) {
  const { provider, mode, on_outage, scheme } = endpoint;
  return (
    <SenderSettings {...acts} do={CHANGE} changesOf={(form) => changedOf(form, settingsOf(form))}>
      <div class="fields">
        <Choice name="mode" label="Takes effect" options={MODES} value={mode} />
        <Choice
          name="on_outage"
          label="Deliveries while the ledger is away"
          options={ON_OUTAGE}
          value={on_outage}
          hint="What is accepted takes effect when the ledger is back."
        />
        <Particulars endpoint={endpoint} />
        <Numbers endpoint={endpoint} />
      </div>
      {provider === 'hmac' && (
        <TextField
          name="scheme"
          label="Scheme"
          value={asJson(scheme)}
          hint="How the signature is made, as JSON."
        />
      )}
    </SenderSettings>
  );
}

export function Endpoint({ parameter: name }: { parameter: string }) {
  const loaded = useLoad(`endpoint ${name}`, () => findEndpoint(name));
  const endpoint = loaded.value;
  const actsOn = (sender: EndpointRow): SenderActs => ({
    sender,
    audit: endpointAudit(name),
    calls: endpointCalls(name),
    onDone: loaded.reload,
  });
  return (
    <>
      <PageHead
        title={name}
        state={endpoint && stateOf(endpoint.is_active, endpoint.secret_fault)}
        about={
          <>
            Its provider delivers to <code class="given">/webhooks/{name}</code>
          </>
        }
      >
        {endpoint && (
          <Link class="button" to={pathWith('/events', { webhook_id: endpoint.webhook_id })}>
            Events
          </Link>
        )}
        {endpoint && (
          <May do={CHANGE}>
            <SenderButtons {...actsOn(endpoint)} />
          </May>
        )}
      </PageHead>
      <Await loaded={loaded}>
        {(found) => (
          <>
            <SecretFault fault={found.secret_fault}>
              <Meanwhile provider={found.provider} endpoint={name} />
            </SecretFault>
            <Card title="The endpoint">
              <Facts
                facts={[
                  ['Provider', found.provider],
                  ['Tenant', found.tenant],
                  [
                    'Secrets',
                    <Secrets key="secrets" names={found.secret_names} fault={found.secret_fault} />,
                  ],
                  ['Id', <Id key="id" value={found.webhook_id} />],
                  ['Added', <Moment key="added" at={found.created_at} />],
                  [
                    'What was done',
                    <Link key="audit" to={endpointAudit(name)}>
                      Audit rows
                    </Link>,
                  ],
                ]}
              />
            </Card>
            <Settings key={JSON.stringify(found)} endpoint={found} acts={actsOn(found)} />
          </>
        )}
      </Await>
    </>
  );
}
