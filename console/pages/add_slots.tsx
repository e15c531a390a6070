import { useRef } from 'preact/hooks';
import { post } from '../lib/api.ts';
import { plural } from '../lib/format.ts';
import { poolAudit } from '../lib/links.ts';
import type { PoolView } from '../lib/shapes.ts';
import { MAX_SLOTS, newRequestId } from '../lib/slots.ts';
import { Field } from '../parts/fields.tsx';
import { FormDialog, reasonOf } from '../parts/form_dialog.tsx';
import { useSlotSteps } from '../parts/progress.tsx';
import { say } from '../parts/toast.tsx';

export function AddSlots({ pool, onAdded, onClose }: { pool: string; onAdded(): void; onClose(): void }) {
  const { bar, put } = useSlotSteps();
  /** One for the same number, so that a second press goes on where the first one failed. */
  const asked = useRef({ slots: 0, requestId: '' });
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const slots = Number(new FormData(form).get('slots'));
    if (asked.current.slots !== slots) asked.current = { slots, requestId: newRequestId() };
    try {
      await put(slots, asked.current.requestId, (step) =>
        post<PoolView>(`/admin/pools/${encodeURIComponent(pool)}`, {
          add_slots: step.slots,
          request_id: step.request_id,
          ...reasonOf(form),
        }),
      );
    } finally {
      // Some may be there, also where it failed.
      onAdded();
    }
    say(`${plural(slots, 'slot')} more on sale.`, 'good', poolAudit(pool));
    onClose();
  };
  return (
    <FormDialog title="Add slots" action="Add slots" submit={submit} onClose={onClose}>
      <Field name="slots" label="How many" type="number" isRequired min={1} max={MAX_SLOTS} />
      <Field name="reason" label="Reason" hint="For the audit log." />
      {bar}
    </FormDialog>
  );
}
