// A form on a page, with the reason and the button at its end. A person who may not change what it shows can still read it.

import type { ComponentChildren } from 'preact';
import { useSubmit } from '../lib/submit.ts';
import { Field } from './fields.tsx';
import { useMay } from './may.tsx';
import { Card } from './small.tsx';
import { Trouble } from './states.tsx';

interface EndProps {
  /** The route that saves it. */
  do: string;
  /** What the button says. */
  action: string;
  reasonLabel?: string;
}

interface SaveEndProps extends EndProps {
  isBusy: boolean;
  /** What the server refused. */
  children: ComponentChildren;
}

/** The end of a form of several cards; SaveForm has it already. */
export function SaveEnd(props: SaveEndProps) {
  const { do: route, action, reasonLabel = 'Reason for the change', isBusy, children } = props;
  if (!useMay(route)) return <>{children}</>;
  return (
    <>
      <Field name="reason" label={reasonLabel} hint="For the audit log." />
      {children}
      <p>
        <button type="submit" class="button button-main" disabled={isBusy}>
          {action}
        </button>
      </p>
    </>
  );
}

interface SaveFormProps extends EndProps {
  title: string;
  submit(form: HTMLFormElement): Promise<void>;
  children: ComponentChildren;
}

export function SaveForm({ title, submit, children, ...end }: SaveFormProps) {
  const { isBusy, error, run } = useSubmit();
  const mayChange = useMay(end.do);
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    void run(() => submit(form));
  };
  return (
    <form class="form-cards" onSubmit={onSubmit}>
      <Card title={title}>
        <fieldset class="bare" disabled={!mayChange}>
          {children}
        </fieldset>
        <SaveEnd {...end} isBusy={isBusy}>
          {error && <Trouble error={error} />}
        </SaveEnd>
      </Card>
    </form>
  );
}
