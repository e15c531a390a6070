// A form in a dialog: what the server refuses is said in it, and it can be left without doing anything.

import type { ComponentChildren } from 'preact';
import { useSubmit } from '../lib/submit.ts';
import { Dialog } from './dialog.tsx';
import { Trouble } from './states.tsx';

export function FormDialog({
  title,
  action,
  isDanger = false,
  submit,
  onClose,
  children,
}: {
  title: string;
  /** What the button says. */
  action: string;
  isDanger?: boolean;
  submit(form: HTMLFormElement): Promise<void>;
  onClose(): void;
  children: ComponentChildren;
}) {
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
