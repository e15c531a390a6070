import { useState } from 'preact/hooks';
import { pathWith, post } from '../lib/api.ts';
import { endpointAudit } from '../lib/links.ts';
import { listEndpoints, usePages } from '../lib/lists.ts';
import { Link } from '../lib/router.tsx';
import type { EndpointRow } from '../lib/shapes.ts';
import { ReasonDialog } from '../parts/form_dialog.tsx';
import { List } from '../parts/list.tsx';
import { May, useMay } from '../parts/may.tsx';
import { Chip, Given, NewButton, PageHead } from '../parts/small.tsx';
import { Empty } from '../parts/states.tsx';
import type { Column } from '../parts/table.tsx';
import { say } from '../parts/toast.tsx';
import { NewEndpoint } from './new_endpoint.tsx';
import { UnnamedPayments } from './unnamed_payments.tsx';

function Switch({ endpoint, onClose, onDone }: { endpoint: EndpointRow; onClose(): void; onDone(): void }) {
  const { name, is_active } = endpoint;
  const verb = is_active ? 'Switch off' : 'Switch on';
  const change = async (reason: { reason?: string }): Promise<void> => {
    await post('/admin/webhooks/endpoints/change', { name, changes: { is_active: !is_active }, ...reason });
    say(`${name} is ${is_active ? 'off' : 'on'}.`, 'good', endpointAudit(name));
    onDone();
  };
  return (
    <ReasonDialog
      title={`${verb} ${name}`}
      action={verb}
      isDanger={is_active}
      change={change}
      onClose={onClose}
    >
      {is_active
        ? 'The server refuses the provider until the endpoint is on again; most providers try again for hours.'
        : 'The server takes deliveries again at once.'}
    </ReasonDialog>
  );
}

/** Only Stripe says of its events whether they are live, and of which account. */
const TAKES: Readonly<Record<EndpointRow['livemode'], string>> = {
  live: 'live events',
  test: 'test events',
  both: 'live and test events',
};

/** `onSwitch` is left out for who may not. */
function columnsFor(onSwitch?: (endpoint: EndpointRow) => void): Column<EndpointRow>[] {
  const change: Column<EndpointRow>[] =
    onSwitch === undefined
      ? []
      : [
          {
            head: 'Change',
            cell: (endpoint) => (
              <button type="button" class="button button-small" onClick={() => onSwitch(endpoint)}>
                {endpoint.is_active ? 'Switch off…' : 'Switch on…'}
              </button>
            ),
          },
        ];
  return [
    {
      head: 'Endpoint',
      place: 'title',
      cell: ({ name, webhook_id }) => (
        <Link to={pathWith('/events', { webhook_id })}>
          <Given value={name} />
        </Link>
      ),
    },
    {
      head: 'State',
      place: 'corner',
      cell: ({ is_active, secret_fault }) => (
        <Chip state={!is_active ? 'off' : secret_fault ? 'no_secret' : 'active'} />
      ),
    },
    {
      head: 'Tenant',
      cell: ({ tenant, provider, livemode, accounts }) => (
        <>
          <Given value={tenant} />
          {provider === 'stripe' && (
            <>
              <br />
              <small>{[TAKES[livemode], ...accounts].join(', ')}</small>
            </>
          )}
        </>
      ),
    },
    {
      head: 'Takes effect',
      cell: ({ mode, on_outage }) => (
        <>
          {mode === 'inline' ? 'before the answer' : 'after the answer'}
          <br />
          <small>{on_outage === 'accept' ? 'accepts' : 'refuses'} while DB2 is away</small>
        </>
      ),
    },
    { head: 'Attempts', isNumber: true, cell: ({ max_attempts }) => max_attempts },
    {
      head: 'Secrets by name',
      place: 'wide',
      cell: ({ secret_names, secret_fault }) => (
        <>
          <code>{secret_names.join(', ')}</code>
          {secret_fault && (
            <>
              <br />
              <small class="field-error">
                {secret_fault} What is signed with it is refused until the server finds it in DB2’s Vault, in
                the file that SLUICE_SECRETS_FILE names, or in its environment.
              </small>
            </>
          )}
        </>
      ),
    },
    ...change,
  ];
}

export function Webhooks() {
  const pages = usePages('endpoints', listEndpoints);
  const [switched, setSwitched] = useState<EndpointRow>();
  const [isNew, setNew] = useState(false);
  const maySwitch = useMay('POST /admin/webhooks/endpoints/change');
  return (
    <>
      <PageHead title="Webhooks" about="Where providers deliver. Follow one to its events.">
        <May do="POST /admin/webhooks/endpoints">
          <NewButton onClick={() => setNew(true)}>New endpoint</NewButton>
        </May>
      </PageHead>
      <List
        caption="Webhook endpoints"
        whole={{}}
        pages={pages}
        columns={columnsFor(maySwitch ? setSwitched : undefined)}
        keyOf={({ webhook_id }) => webhook_id}
      >
        <Empty title="No endpoint yet">
          Add one here, or with <code>sluice webhooks endpoints add</code>.
        </Empty>
      </List>
      <UnnamedPayments />
      {isNew && <NewEndpoint onClose={() => setNew(false)} onAdded={pages.reload} />}
      {switched && (
        <Switch endpoint={switched} onClose={() => setSwitched(undefined)} onDone={pages.reload} />
      )}
    </>
  );
}
