import { useState } from 'preact/hooks';
import { pathWith, post } from '../lib/api.ts';
import { listEndpoints } from '../lib/lists.ts';
import { useLoad } from '../lib/load.ts';
import { Link } from '../lib/router.tsx';
import type { EndpointRow } from '../lib/shapes.ts';
import { Field } from '../parts/fields.tsx';
import { FormDialog } from '../parts/form_dialog.tsx';
import { Icon } from '../parts/icons.tsx';
import { Chip, Given, Moment, PageHead } from '../parts/small.tsx';
import { Await, Empty } from '../parts/states.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { say } from '../parts/toast.tsx';
import { NewEndpoint } from './new_endpoint.tsx';

function Switch({ endpoint, onClose, onDone }: { endpoint: EndpointRow; onClose(): void; onDone(): void }) {
  const verb = endpoint.is_active ? 'Switch off' : 'Switch on';
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const reason = String(new FormData(form).get('reason'));
    const changes = { is_active: !endpoint.is_active };
    await post('/admin/webhooks/endpoints/change', { name: endpoint.name, changes, reason });
    say(`${endpoint.name} is ${endpoint.is_active ? 'off' : 'on'}.`);
    onDone();
    onClose();
  };
  return (
    <FormDialog
      title={`${verb} ${endpoint.name}`}
      action={verb}
      isDanger={endpoint.is_active}
      submit={submit}
      onClose={onClose}
    >
      <p>
        {endpoint.is_active
          ? 'The provider is refused until the endpoint is on again; most providers try again for hours.'
          : 'The provider is heard again at once.'}
      </p>
      <Field name="reason" label="Reason" isRequired autoFocus />
    </FormDialog>
  );
}

function columnsFor(onSwitch: (endpoint: EndpointRow) => void): Column<EndpointRow>[] {
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
      cell: ({ is_active }) => <Chip state={is_active ? 'active' : 'off'} />,
    },
    { head: 'Provider', cell: ({ provider }) => provider },
    {
      head: 'Takes effect',
      cell: ({ mode }) => (mode === 'inline' ? 'before the answer' : 'after the answer'),
    },
    { head: 'Attempts', isNumber: true, cell: ({ max_attempts }) => max_attempts },
    {
      head: 'Secrets by name',
      place: 'wide',
      cell: ({ secret_names }) => <code>{secret_names.join(', ')}</code>,
    },
    { head: 'Since', cell: ({ created_at }) => <Moment at={created_at} /> },
    {
      head: 'Change',
      cell: (endpoint) => (
        <button type="button" class="button button-small" onClick={() => onSwitch(endpoint)}>
          {endpoint.is_active ? 'Switch off…' : 'Switch on…'}
        </button>
      ),
    },
  ];
}

export function Webhooks() {
  const loaded = useLoad('endpoints', listEndpoints);
  const [switched, setSwitched] = useState<EndpointRow>();
  const [isNew, setNew] = useState(false);
  return (
    <>
      <PageHead title="Webhooks" about="Where providers deliver. Follow one to its events.">
        <button type="button" class="button button-main" onClick={() => setNew(true)}>
          <Icon name="plus" /> New endpoint
        </button>
      </PageHead>
      <Await loaded={loaded}>
        {(endpoints) =>
          endpoints.length === 0 ? (
            <Empty title="No endpoint yet">
              Add one here, or with <code>sluice webhooks endpoints add</code>.
            </Empty>
          ) : (
            <Table
              caption="Webhook endpoints"
              rows={endpoints}
              columns={columnsFor(setSwitched)}
              keyOf={({ webhook_id }) => webhook_id}
            />
          )
        }
      </Await>
      {isNew && <NewEndpoint onClose={() => setNew(false)} onAdded={loaded.reload} />}
      {switched && (
        <Switch endpoint={switched} onClose={() => setSwitched(undefined)} onDone={loaded.reload} />
      )}
    </>
  );
}
