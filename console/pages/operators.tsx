import { useState } from 'preact/hooks';
import { ROLES } from '../../db1/supabase/functions/_shared/roles.ts';
import { get, operator, post } from '../lib/api.ts';
import { operatorAudit } from '../lib/links.ts';
import { type Page, usePages } from '../lib/lists.ts';
import { newKey } from '../lib/new_key.ts';
import { Link } from '../lib/router.tsx';
import type { OperatorKey, OperatorView } from '../lib/shapes.ts';
import { useStore } from '../lib/store.ts';
import { Choice, Field } from '../parts/fields.tsx';
import { FormDialog, ReasonDialog, reasonOf } from '../parts/form_dialog.tsx';
import { List } from '../parts/list.tsx';
import { May, useMay } from '../parts/may.tsx';
import { Chip, Given, Moment, NewButton, PageHead } from '../parts/small.tsx';
import { Empty } from '../parts/states.tsx';
import type { Column } from '../parts/table.tsx';
import { say } from '../parts/toast.tsx';

const ADD = 'POST /admin/operators';

const ABOUT_ROLES: Readonly<Record<string, string>> = {
  viewer: 'viewer: sees everything, changes nothing',
  scanner: 'scanner: checks tickets at the entrance, sees nothing else',
  operator: 'operator: also replays, discards, releases, and changes pools',
  admin: 'admin: also decides who delivers and who is an operator',
};

/** What is asked of the server, about whom. */
type Asked = { readonly what: 'add' | 'rotate' | 'revoke'; readonly one?: OperatorView };

const pathOf = (name: string, act: string): string => `/admin/operators/${encodeURIComponent(name)}/${act}`;

interface DialogProps {
  onClose(): void;
  onDone(): void;
}

function AddDialog({
  again,
  onKey,
  onClose,
}: {
  again: OperatorView | undefined;
  onKey(made: OperatorKey): void;
  onClose(): void;
}) {
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const data = new FormData(form);
    const name = String(data.get('name')).trim();
    onKey(await post<OperatorKey>('/admin/operators', { name, role: data.get('role'), ...reasonOf(form) }));
  };
  return (
    <FormDialog title="New operator" action="Make a key" submit={submit} onClose={onClose}>
      <Field
        name="name"
        label="Name"
        isRequired
        autoFocus
        value={again?.name}
        hint="As the audit log shall name the person."
      />
      <Choice
        name="role"
        label="Role"
        options={ROLES.map((role) => [role, ABOUT_ROLES[role] ?? role] as const)}
        value={again?.role ?? 'viewer'}
        hint="To change the role of a person, revoke the key and add the same name again."
      />
      <Field name="reason" label="Reason" hint="For the audit log." />
    </FormDialog>
  );
}

function RotateDialog({
  name,
  isOwn,
  onKey,
  onClose,
}: {
  name: string;
  isOwn: boolean;
  onKey(made: OperatorKey): void;
  onClose(): void;
}) {
  const submit = async (form: HTMLFormElement): Promise<void> =>
    onKey(await post<OperatorKey>(pathOf(name, 'rotate'), reasonOf(form)));
  return (
    <FormDialog title={`New key for ${name}`} action="Make a new key" submit={submit} onClose={onClose}>
      <p>
        The old key and its sessions end within a second.
        {isOwn && ' This is your own key: close the next dialog, and this browser signs in with the new one.'}
      </p>
      <Field name="reason" label="Reason" isRequired autoFocus hint="For the audit log." />
    </FormDialog>
  );
}

function RevokeDialog({ name, isOwn, onClose, onDone }: DialogProps & { name: string; isOwn: boolean }) {
  const change = async (reason: { reason?: string }): Promise<void> => {
    const { revoked } = await post<{ revoked: boolean }>(pathOf(name, 'revoke'), reason);
    say(
      revoked ? `${name} is not an operator any more.` : `${name} was revoked before.`,
      'good',
      operatorAudit(name),
    );
    onDone();
  };
  return (
    <ReasonDialog
      title={`Revoke the key of ${name}`}
      action="Yes, revoke"
      isDanger
      hint="For the audit log."
      change={change}
      onClose={onClose}
    >
      The key and its sessions end within a second. The name stays with this person: adding it again brings
      the person back. {isOwn && 'This is your own key: you are signed out.'}
    </ReasonDialog>
  );
}

function columnsFor(ask: ((asked: Asked) => void) | undefined): Column<OperatorView>[] {
  const change: Column<OperatorView> = {
    head: 'Change',
    cell: (one) =>
      one.revoked_at === null ? (
        <span class="row-acts">
          <button type="button" class="button button-small" onClick={() => ask?.({ what: 'rotate', one })}>
            New key…
          </button>
          <button
            type="button"
            class="button button-small button-danger"
            onClick={() => ask?.({ what: 'revoke', one })}
          >
            Revoke…
          </button>
        </span>
      ) : (
        <button type="button" class="button button-small" onClick={() => ask?.({ what: 'add', one })}>
          Add again…
        </button>
      ),
  };
  return [
    { head: 'Name', place: 'title', cell: ({ name }) => <Given value={name} /> },
    {
      head: 'Role',
      place: 'corner',
      cell: ({ role, revoked_at }) => <Chip state={revoked_at === null ? role : 'revoked'} />,
    },
    { head: 'Key made', cell: ({ key_made_at }) => <Moment at={key_made_at} /> },
    {
      head: 'Last here',
      cell: ({ last_used_at }) => (last_used_at === null ? 'never' : <Moment at={last_used_at} />),
    },
    { head: 'What was done', cell: ({ name }) => <Link to={operatorAudit(name)}>Audit rows</Link> },
    ...(ask === undefined ? [] : [change]),
  ];
}

export function Operators() {
  const pages = usePages('operators', () => get<Page<OperatorView>>('/admin/operators'));
  const [asked, setAsked] = useState<Asked>();
  const self = useStore(operator);
  const mayChange = useMay(ADD);
  const close = (): void => setAsked(undefined);
  const onKey = (key: OperatorKey): void => {
    newKey.set({ ...key, isOwn: key.name === self?.name });
    pages.reload();
    close();
  };
  const { what, one } = asked ?? {};
  const isOwn = one !== undefined && one.name === self?.name;
  return (
    <>
      <PageHead title="Operators" about="The people with keys, and what each may do.">
        <May do={ADD}>
          <NewButton onClick={() => setAsked({ what: 'add' })}>New operator</NewButton>
        </May>
      </PageHead>
      <List
        caption="Operators"
        whole={{}}
        pages={pages}
        columns={columnsFor(mayChange ? setAsked : undefined)}
        keyOf={({ name }) => name}
      >
        <Empty title="No operator yet">
          <code>SLUICE_ADMIN_KEY</code> is the only key. Give each person a key of their own, so that the
          audit log names them.
        </Empty>
      </List>
      {what === 'add' && <AddDialog again={one} onKey={onKey} onClose={close} />}
      {what === 'rotate' && one && (
        <RotateDialog name={one.name} isOwn={isOwn} onKey={onKey} onClose={close} />
      )}
      {what === 'revoke' && one && (
        <RevokeDialog name={one.name} isOwn={isOwn} onClose={close} onDone={pages.reload} />
      )}
    </>
  );
}
