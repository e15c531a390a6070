import { useState } from 'preact/hooks';
import { get, post } from '../lib/api.ts';
import { wordsIn } from '../lib/changes.ts';
import { siteAudit, sitePlace } from '../lib/links.ts';
import { type Page, usePages } from '../lib/lists.ts';
import { go } from '../lib/router.tsx';
import type { SiteView } from '../lib/shapes.ts';
import { Check, Choice, Field } from '../parts/fields.tsx';
import { FormDialog, reasonOf } from '../parts/form_dialog.tsx';
import { List } from '../parts/list.tsx';
import { May } from '../parts/may.tsx';
import { ON_OUTAGE, SECRET_NAME, SecretNames, stateOf } from '../parts/sender.tsx';
import { Chip, Given, Moment, NewButton, PageHead } from '../parts/small.tsx';
import { Empty } from '../parts/states.tsx';
import { type Column, linkColumn } from '../parts/table.tsx';
import { say } from '../parts/toast.tsx';

export const KINDS_HINT = 'The kinds that it may send, apart by commas. Empty: any.';
export const UNSIGNED = 'Take requests without a signature too';

const COLUMNS: Column<SiteView>[] = [
  linkColumn(
    'Site',
    ({ site_id }) => sitePlace(site_id),
    ({ site_id }) => <Given value={site_id} />,
  ),
  {
    head: 'State',
    place: 'corner',
    cell: ({ is_active, secret_fault }) => <Chip state={stateOf(is_active, secret_fault)} />,
  },
  {
    head: 'Signature',
    cell: ({ require_signature }) => (require_signature ? 'required' : 'not required'),
  },
  { head: 'Kinds', cell: ({ kinds }) => kinds?.join(', ') ?? 'any' },
  {
    head: 'While DB2 is away',
    cell: ({ on_outage }) => (on_outage === 'accept' ? 'accepts' : 'refuses'),
  },
  { head: 'Added', cell: ({ created_at }) => <Moment at={created_at} /> },
  {
    head: 'Secrets by name',
    place: 'wide',
    cell: ({ secret_names, secret_fault }) => <SecretNames names={secret_names} fault={secret_fault} />,
  },
];

function NewSite({ onClose }: { onClose(): void }) {
  const [isUnsigned, setUnsigned] = useState(false);
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const data = new FormData(form);
    const text = (name: string): string => String(data.get(name) ?? '').trim();
    const kinds = wordsIn(text('kinds'));
    const site = await post<SiteView>('/admin/sites', {
      site_id: text('site_id'),
      secret_names: wordsIn(text('secret_name')),
      require_signature: !data.has('unsigned'),
      ...(kinds.length > 0 && { kinds }),
      on_outage: text('on_outage'),
      ...reasonOf(form),
    });
    say(`${site.site_id} may send call events now.`, 'good', siteAudit(site.site_id));
    go(sitePlace(site.site_id));
  };
  return (
    <FormDialog title="New call site" action="Add call site" submit={submit} onClose={onClose}>
      <div class="fields">
        <Field
          name="site_id"
          label="Id"
          isRequired
          autoFocus
          pattern="[A-Za-z0-9_:@\-]{1,200}"
          hint="As it sends it in X-Ops-Site: letters, digits and _ : @ -"
        />
        <Field name="secret_name" label="Name of the secret" isRequired={!isUnsigned} {...SECRET_NAME} />
        <Field name="kinds" label="Kinds" hint={KINDS_HINT} />
        <Choice name="on_outage" label="Calls while the ledger is away" options={ON_OUTAGE} value="refuse" />
      </div>
      <Check name="unsigned" label={UNSIGNED} onToggle={setUnsigned} />
      <Field name="reason" label="Reason" hint="For the audit log." />
    </FormDialog>
  );
}

export function Sites() {
  const pages = usePages('sites', (after) => get<Page<SiteView>>('/admin/sites', { after }));
  const [isNew, setNew] = useState(false);
  return (
    <>
      <PageHead title="Call sites" about="Telephone systems that may send call events.">
        <May do="POST /admin/sites">
          <NewButton onClick={() => setNew(true)}>New call site</NewButton>
        </May>
      </PageHead>
      <List caption="Call sites" whole={{}} pages={pages} columns={COLUMNS} keyOf={({ site_id }) => site_id}>
        <Empty title="No call site yet">
          Add one here, or with <code>sluice calls sites add</code>.
        </Empty>
      </List>
      {isNew && <NewSite onClose={() => setNew(false)} />}
    </>
  );
}
