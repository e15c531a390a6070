// What an admin may do to a user: take all that is known along as a file, and erase it.

import { useEffect, useRef, useState } from 'preact/hooks';
import { post } from '../lib/api.ts';
import { auditPlace, userPlace } from '../lib/links.ts';
import { go } from '../lib/router.tsx';
import { Field } from '../parts/fields.tsx';
import { FormDialog, reasonOf } from '../parts/form_dialog.tsx';
import { May } from '../parts/may.tsx';
import { say } from '../parts/toast.tsx';

interface ActProps {
  user: string;
  onClose(): void;
  onDone(): void;
}

interface Exported {
  readonly found: readonly unknown[];
  readonly next: string | null;
}

interface Erased {
  readonly status: 'erased' | 'nothing' | 'working';
  readonly replacement: string | null;
  readonly waits_for: string | null;
}

/** An answer holds a part: it is asked for the next until there is none. */
async function exportAll(user: string, reason: { reason?: string }): Promise<unknown[]> {
  const found: unknown[] = [];
  for (let after: string | undefined; ; ) {
    const page = await post<Exported>('/admin/users/export', {
      user_id: user,
      ...reason,
      ...(after !== undefined && { after }),
    });
    found.push(...page.found);
    if (page.next === null) return found;
    after = page.next;
  }
}

function download(name: string, value: unknown): void {
  const url = URL.createObjectURL(new Blob([JSON.stringify(value, null, 2)], { type: 'application/json' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

function ExportDialog({ user, onClose, onDone }: ActProps) {
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const found = await exportAll(user, reasonOf(form));
    download('sluice-user.json', { user_id: user, found });
    say('The file has all that was found.', 'good', auditPlace(1, { action: 'user_export' }));
    onDone();
    onClose();
  };
  return (
    <FormDialog title="Export all about this user" action="Export" submit={submit} onClose={onClose}>
      <p>
        A JSON file with every row about {user}, table by table, from all databases. The audit log says who
        asked.
      </p>
      <Field name="reason" label="Reason" autoFocus hint="For the audit log." />
    </FormDialog>
  );
}

function EraseDialog({ user, onClose }: ActProps) {
  const isGone = useRef(false);
  const [waitsFor, setWaitsFor] = useState<string>();
  useEffect(
    () => () => {
      isGone.current = true;
    },
    [],
  );
  /** Goes on by itself only where the server ran out of time: what it waits for may last, and a person may have to end it. */
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const given = String(new FormData(form).get('user'));
    if (given !== user) throw new Error('What you typed is not the name of this user.');
    setWaitsFor(undefined);
    const body = { user_id: user, ...reasonOf(form) };
    let erased: Erased;
    do erased = await post<Erased>('/admin/users/erase', body);
    while (erased.status === 'working' && erased.waits_for === null && !isGone.current);
    if (erased.status === 'working') {
      if (isGone.current) say('This user is not erased yet. Erase again: it goes on.', 'bad');
      else setWaitsFor(erased.waits_for ?? undefined);
      return;
    }
    const audit = auditPlace(1, { action: 'user_erase' });
    if (erased.replacement === null) say('No database knew this user.', 'bad');
    else say(`Erased. ${erased.replacement} stands in the place of the name.`, 'good', audit);
    if (!isGone.current)
      go(erased.replacement === null ? '/users' : userPlace(erased.replacement), 'replace');
  };
  return (
    <FormDialog
      title="Erase this user"
      action={waitsFor === undefined ? 'Yes, erase for good' : 'Go on'}
      isDanger
      submit={submit}
      onClose={onClose}
    >
      <p>
        A random name takes the place of {user} in all databases. Claims, tickets and sums stay. It cannot be
        undone.
      </p>
      <Field name="user" label="Type the name of the user" isRequired autoFocus />
      <Field name="reason" label="Reason" isRequired hint="For the audit log." />
      {waitsFor !== undefined && <p role="status">Not erased yet. It waits for: {waitsFor}</p>}
    </FormDialog>
  );
}

export function UserActs({ user, onDone }: { user: string; onDone(): void }) {
  const [act, setAct] = useState<'export' | 'erase'>();
  const props: ActProps = { user, onDone, onClose: () => setAct(undefined) };
  return (
    <>
      <May do="POST /admin/users/export">
        <button type="button" class="button" onClick={() => setAct('export')}>
          Export…
        </button>
      </May>
      <May do="POST /admin/users/erase">
        <button type="button" class="button button-danger" onClick={() => setAct('erase')}>
          Erase…
        </button>
      </May>
      {act === 'export' && <ExportDialog {...props} />}
      {act === 'erase' && <EraseDialog {...props} />}
    </>
  );
}
