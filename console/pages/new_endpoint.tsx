import { useState } from 'preact/hooks';
import { post } from '../lib/api.ts';
import { endpointAudit } from '../lib/links.ts';
import { type EndpointRow, PROVIDERS } from '../lib/shapes.ts';
import { Choice, Field } from '../parts/fields.tsx';
import { FormDialog } from '../parts/form_dialog.tsx';
import { ON_OUTAGE, SECRET_NAME } from '../parts/sender.tsx';
import { say } from '../parts/toast.tsx';

export const MODES = [
  ['queued', 'after the answer'],
  ['inline', 'before the answer'],
] as const;
const AS_USUAL = [['', 'accept of Twilio, refuse others'], ...ON_OUTAGE] as const;
export const LIVE_MODES = [
  ['live', 'live ones'],
  ['test', 'test ones'],
  ['both', 'both'],
] as const;
const PROVIDER_OPTIONS = PROVIDERS.map(
  (name) => [name, name === 'hmac' ? 'hmac, described below' : name] as const,
);

function endpointOf(form: HTMLFormElement): Record<string, unknown> {
  const data = new FormData(form);
  const text = (name: string): string => String(data.get(name) ?? '').trim();
  const optional = (name: string) => (text(name) === '' ? {} : { [name]: text(name) });
  return {
    name: text('name'),
    provider: text('provider'),
    mode: text('mode'),
    secret_names: [text('secret_name')],
    ...optional('verify_token_name'),
    ...optional('public_url'),
    ...optional('livemode'),
    ...optional('on_outage'),
    ...optional('tenant'),
    ...optional('reason'),
    ...(text('provider') === 'hmac' && { scheme: { header: text('header'), id: text('id') } }),
  };
}

/** What only some providers need. */
function Particulars({ provider }: { provider: string }) {
  if (provider === 'whatsapp')
    return <Field name="verify_token_name" label="Name of the verify token" isRequired {...SECRET_NAME} />;
  if (provider === 'twilio')
    return (
      <Field
        name="public_url"
        label="Public address"
        isRequired
        pattern="https?://.*"
        hint="Exactly as it stands in Twilio, which signs it."
      />
    );
  if (provider === 'stripe')
    return (
      <Choice name="livemode" label="Events" options={LIVE_MODES} value="live" hint="Others are skipped." />
    );
  if (provider !== 'hmac') return null;
  return (
    <>
      <Field
        name="header"
        label="Header of the signature"
        isRequired
        pattern="[a-z0-9][a-z0-9\-]{0,63}"
        hint="In lower case, such as x-signature. SHA-256 of the body, in hex; the command line knows other schemes."
      />
      <Field
        name="id"
        label="Event id"
        isRequired
        hint="Where it stands in the body, such as /id, or the name of a header."
      />
    </>
  );
}

export function NewEndpoint({ onClose, onAdded }: { onClose(): void; onAdded(): void }) {
  const [provider, setProvider] = useState<string>(PROVIDERS[0]);
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const added = await post<EndpointRow>('/admin/webhooks/endpoints', endpointOf(form));
    say(`${added.name} is on: deliver to /webhooks/${added.name}`, 'good', endpointAudit(added.name));
    onAdded();
    onClose();
  };
  return (
    <FormDialog title="New endpoint" action="Add endpoint" submit={submit} onClose={onClose}>
      <div class="fields">
        <Field
          name="name"
          label="Name"
          isRequired
          autoFocus
          pattern="[a-z0-9][a-z0-9_\-]{0,62}"
          hint="The last part of its address: small letters, digits, _ and -"
        />
        <Choice
          name="provider"
          label="Provider"
          options={PROVIDER_OPTIONS}
          value={provider}
          hint="Who signs what is delivered."
          onChoose={setProvider}
        />
        <Field
          name="secret_name"
          label="Name of the secret"
          isRequired
          placeholder="STRIPE_WEBHOOK_SECRET"
          {...SECRET_NAME}
        />
        <Choice name="mode" label="Takes effect" options={MODES} value="queued" />
        <Choice
          name="on_outage"
          label="Deliveries while the ledger is away"
          options={AS_USUAL}
          value=""
          hint="What is accepted takes effect when the ledger is back, also where the effect comes before the answer."
        />
        <Particulars provider={provider} />
        <Field
          name="tenant"
          label="Share a tenant"
          pattern="[a-z0-9][a-z0-9_\-]{0,62}(:[a-z0-9][a-z0-9_\-]{0,62})?"
          hint="One that exists, such as stripe: its events, payments and credits are this endpoint’s too."
        />
        <Field name="reason" label="Reason" />
      </div>
    </FormDialog>
  );
}
