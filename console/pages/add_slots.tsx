import { useRef, useState } from 'preact/hooks';
import { post } from '../lib/api.ts';
import { plural } from '../lib/format.ts';
import type { PoolView } from '../lib/shapes.ts';
import { inSteps, newRequestId } from '../lib/slots.ts';
import { useSubmit } from '../lib/submit.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Field } from '../parts/fields.tsx';
import { Progress } from '../parts/progress.tsx';
import { Trouble } from '../parts/states.tsx';
import { say } from '../parts/toast.tsx';

const MAX_SLOTS = 1_000_000;

export function AddSlots({ pool, onAdded, onClose }: { pool: string; onAdded(): void; onClose(): void }) {
  const { isBusy, error, run } = useSubmit();
  const [progress, setProgress] = useState<{ done: number; total: number }>();
  /** One for the same number, so that a second press goes on where the first one failed. */
  const asked = useRef({ slots: 0, requestId: '' });
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault();
    const data = new FormData(event.currentTarget as HTMLFormElement);
    const slots = Number(data.get('slots'));
    const reason = String(data.get('reason')).trim();
    if (asked.current.slots !== slots) asked.current = { slots, requestId: newRequestId() };
    void run(async () => {
      const onProgress = (done: number) => setProgress({ done, total: slots });
      try {
        await inSteps(slots, asked.current.requestId, onProgress, (step) =>
          post<PoolView>(`/admin/pools/${encodeURIComponent(pool)}`, {
            add_slots: step.slots,
            request_id: step.request_id,
            ...(reason !== '' && { reason }),
          }),
        );
      } finally {
        // Some may be there, also where it failed.
        onAdded();
      }
      say(`${plural(slots, 'slot')} more on sale.`);
      onClose();
    });
  };
  return (
    <Dialog title="Add slots" onClose={onClose}>
      <form onSubmit={onSubmit}>
        <Field name="slots" label="How many" type="number" isRequired min={1} max={MAX_SLOTS} />
        <Field name="reason" label="Reason" hint="For the audit log." />
        {isBusy && progress && <Progress label="Putting slots on sale" {...progress} />}
        {error && <Trouble error={error} />}
        <footer class="dialog-foot">
          <button type="submit" class="button button-main" disabled={isBusy}>
            Add slots
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
