// What webhook endpoints and call sites have in common: settings, secrets by their names, which can be rotated, and a switch.

import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { SenderCalls } from '../lib/senders.ts';
import { Check, Field } from './fields.tsx';
import { FormDialog, ReasonDialog, reasonOf } from './form_dialog.tsx';
import { SaveForm } from './save_form.tsx';
import { refusedUntil } from './secret_fault.tsx';
import { say } from './toast.tsx';

/** What the server takes as the name of a secret: a secret pasted here by mistake is stopped before it is sent. */
export const SECRET_NAME = {
  pattern: '[A-Z][A-Z0-9_]{0,99}',
  hint: 'The name of a secret that the server has and the owner of the database allows, never the secret itself.',
};

export const ON_OUTAGE = [
  ['refuse', 'refuse with 503'],
  ['accept', 'accept into the inbox'],
] as const;

export interface Sender {
  /** As its page calls it. */
  readonly name: string;
  readonly secret_names: readonly string[];
  readonly secret_fault?: string | null;
  readonly is_active: boolean;
}

export interface SenderActs {
  readonly sender: Sender;
  /** Where what is done to it is written down. */
  readonly audit: string;
  readonly calls: SenderCalls;
  onDone(): void;
}

type DialogProps = SenderActs & { onClose(): void };

export function SwitchDialog({ sender: { name, is_active }, audit, calls, onDone, onClose }: DialogProps) {
  const verb = is_active ? 'Switch off' : 'Switch on';
  return (
    <ReasonDialog
      title={`${verb} ${name}`}
      action={verb}
      isDanger={is_active}
      onClose={onClose}
      change={async (reason) => {
        await calls.change({ is_active: !is_active }, reason);
        say(`${name} is ${is_active ? 'off' : 'on'}.`, 'good', audit);
        onDone();
      }}
    >
      {is_active
        ? 'Servers refuse its requests within a second, until it is on again. Most providers deliver again for hours.'
        : 'Servers take its requests again within a second.'}
    </ReasonDialog>
  );
}

function RotateDialog({ sender, audit, calls, onDone, onClose }: DialogProps) {
  const { name, secret_names, secret_fault: fault } = sender;
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const data = new FormData(form);
    const secret = String(data.get('secret_name')).trim();
    const only = data.has('only');
    await calls.rotate({ secret_names: [secret], only }, reasonOf(form));
    const kept = secret_names.filter((one) => one !== secret);
    // A fault names the first that cannot be used: the others may be good, or not.
    const others = fault ? '' : `; ${kept.join(', ')} stay good`;
    say(
      only || kept.length === 0
        ? `${secret} is the only secret of ${name} now.`
        : `${secret} is the newest secret of ${name}${others}.`,
      'good',
      audit,
    );
    onDone();
    onClose();
  };
  return (
    <FormDialog title={`Rotate the secret of ${name}`} action="Rotate" submit={submit} onClose={onClose}>
      <p>
        {fault
          ? `${fault} Rotating does not mend that: what is signed with it stays refused. The new secret goes first: change it at the sender at once, then rotate again to the same name and end the old ones.`
          : 'The new secret goes first, and those of now stay good: change it at the sender, then rotate again to the same name and end the old ones.'}
      </p>
      <Field name="secret_name" label="Name of the new secret" isRequired autoFocus {...SECRET_NAME} />
      <Check name="only" label={`End the old ones: ${secret_names.join(', ') || 'there is none'}`} />
      <Field name="reason" label="Reason" isRequired hint="For the audit log." />
    </FormDialog>
  );
}

/** The buttons, and the dialogs that they open. */
export function SenderButtons(acts: SenderActs) {
  const [shown, setShown] = useState<'switch' | 'rotate'>();
  const onClose = (): void => setShown(undefined);
  const { is_active } = acts.sender;
  return (
    <>
      <button type="button" class="button" onClick={() => setShown('rotate')}>
        Rotate secret…
      </button>
      <button
        type="button"
        class={`button ${is_active ? 'button-danger' : 'button-main'}`}
        onClick={() => setShown('switch')}
      >
        {is_active ? 'Switch off…' : 'Switch on…'}
      </button>
      {shown === 'rotate' && <RotateDialog {...acts} onClose={onClose} />}
      {shown === 'switch' && <SwitchDialog {...acts} onClose={onClose} />}
    </>
  );
}

interface SettingsProps extends SenderActs {
  /** The route that saves them. */
  do: string;
  /** What was changed in the form: only that is sent. */
  changesOf(form: HTMLFormElement): Record<string, unknown>;
  children: ComponentChildren;
}

export function SenderSettings({ sender: { name }, audit, calls, onDone, ...form }: SettingsProps) {
  const submit = async (filled: HTMLFormElement): Promise<void> => {
    const changes = form.changesOf(filled);
    if (Object.keys(changes).length === 0) return say('No setting was changed.');
    await calls.change(changes, reasonOf(filled));
    say(`The settings of ${name} are saved.`, 'good', audit);
    onDone();
  };
  return (
    <SaveForm title="Settings" action="Save settings" do={form.do} submit={submit}>
      {form.children}
    </SaveForm>
  );
}

/** In a table: the names, and below them what is wrong. */
export function SecretNames({
  names,
  fault,
}: {
  names: readonly string[];
  fault: string | null | undefined;
}) {
  return (
    <>
      <code>{names.join(', ') || 'none'}</code>
      {fault && (
        <>
          <br />
          <small class="field-error">
            {fault} {refusedUntil(fault)}
          </small>
        </>
      )}
    </>
  );
}

/** On its own page: the names from the newest on, and which one cannot be used. */
export function Secrets({ names, fault }: { names: readonly string[]; fault: string | null | undefined }) {
  if (names.length === 0) return <>none: its requests are not signed</>;
  return (
    <>
      {names.map((name, index) => (
        <div key={name}>
          <code class="given">{name}</code>{' '}
          {fault?.startsWith(`${name} `) ? (
            <small class="field-error">cannot be used</small>
          ) : (
            names.length > 1 && (
              <small class="muted">{index === 0 ? 'newest' : fault ? 'older' : 'still good'}</small>
            )
          )}
        </div>
      ))}
    </>
  );
}

export const stateOf = (is_active: boolean, fault: string | null | undefined): string =>
  !is_active ? 'off' : fault ? 'no_secret' : 'active';
