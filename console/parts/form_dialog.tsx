// A form in a dialog: what the server refuses is said in it, and it can be left without doing anything.

import type { ComponentChildren } from 'preact';
import { useSubmit } from '../lib/submit.ts';
import { Dialog } from './dialog.tsx';
import { Field } from './fields.tsx';
import { Trouble } from './states.tsx';

interface DialogProps {
  title: string;
  /** What the button says. */
  action: string;
  isDanger?: boolean;
  onClose(): void;
  children: ComponentChildren;
}

interface FormDialogProps extends DialogProps {
  submit(form: HTMLFormElement): Promise<void>;
}

export function FormDialog({ title, action, isDanger = false, submit, onClose, children }: FormDialogProps) {
  const { isBusy, error, run } = useSubmit();
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    void run(() => submit(form));
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={onSubmit}>
        {children}
        {error && <Trouble error={error} />}
        <footer class="dialog-foot">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button
            type="submit"
            class={`button ${isDanger ? 'button-danger' : 'button-main'}`}
            disabled={isBusy}
          >
            {isBusy ? 'One moment…' : action}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** What the field of that name holds, for the audit log; nothing where it is empty. */
export function reasonOf(form: HTMLFormElement): { reason?: string } {
  const reason = String(new FormData(form).get('reason') ?? '').trim();
  return reason === '' ? {} : { reason };
}

interface ReasonDialogProps extends DialogProps {
  hint?: string;
  change(reason: { reason?: string }): Promise<void>;
}

/** Asks for the reason, then makes the change and closes. */
export function ReasonDialog({ hint, change, children, ...dialog }: ReasonDialogProps) {
  const submit = async (form: HTMLFormElement): Promise<void> => {
    await change(reasonOf(form));
    dialog.onClose();
  };
  return (
    <FormDialog {...dialog} submit={submit}>
      <p>{children}</p>
      <Field name="reason" label="Reason" isRequired autoFocus {...(hint && { hint })} />
    </FormDialog>
  );
}
