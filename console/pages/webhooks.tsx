import { useState } from 'preact/hooks';
import { endpointAudit, endpointPlace } from '../lib/links.ts';
import { listEndpoints, usePages } from '../lib/lists.ts';
import { endpointCalls } from '../lib/senders.ts';
import type { EndpointRow } from '../lib/shapes.ts';
import { List } from '../parts/list.tsx';
import { May, useMay } from '../parts/may.tsx';
import { SecretNames, SwitchDialog, stateOf } from '../parts/sender.tsx';
import { Chip, Given, NewButton, PageHead } from '../parts/small.tsx';
import { Empty } from '../parts/states.tsx';
import { type Column, linkColumn } from '../parts/table.tsx';
import { NewEndpoint } from './new_endpoint.tsx';
import { UnnamedPayments } from './unnamed_payments.tsx';

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
    linkColumn(
      'Endpoint',
      ({ name }) => endpointPlace(name),
      ({ name }) => <Given value={name} />,
    ),
    {
      head: 'State',
      place: 'corner',
      cell: ({ is_active, secret_fault }) => <Chip state={stateOf(is_active, secret_fault)} />,
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
      cell: ({ secret_names, secret_fault }) => <SecretNames names={secret_names} fault={secret_fault} />,
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
      <PageHead
        title="Webhooks"
        about="Where providers deliver. Follow one to its settings, its secrets and its events."
      >
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
        <SwitchDialog
          sender={switched}
          audit={endpointAudit(switched.name)}
          calls={endpointCalls(switched.name)}
          onClose={() => setSwitched(undefined)}
          onDone={pages.reload}
        />
      )}
    </>
  );
}
