import { useRef } from 'preact/hooks';
import { post } from '../lib/api.ts';
import { poolAudit } from '../lib/links.ts';
import type { PoolView } from '../lib/shapes.ts';
import { MAX_SLOTS, newRequestId } from '../lib/slots.ts';
import { Field } from '../parts/fields.tsx';
import { FormDialog } from '../parts/form_dialog.tsx';
import { useSlotSteps } from '../parts/progress.tsx';
import { say } from '../parts/toast.tsx';
import { RuleFields, rulesOf } from './pool_rules.tsx';

const POOL_NAME = { pattern: '[A-Za-z0-9._~:@\\-]+', hint: 'Letters, digits and . _ ~ : @ -' };

export function NewPool({ onClose, onCreated }: { onClose(): void; onCreated(pool: PoolView): void }) {
  const { bar, put } = useSlotSteps();
  /** One for the same name and number, so that a second press goes on where the first one failed. */
  const asked = useRef({ what: '', requestId: '' });
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const data = new FormData(form);
    const pool_id = String(data.get('pool_id'));
    const slots = Number(data.get('slots'));
    const rules = rulesOf(form);
    const what = `${pool_id} ${slots}`;
    const isAgain = asked.current.what === what;
    if (!isAgain) asked.current = { what, requestId: newRequestId() };
    const path = `/admin/pools/${encodeURIComponent(pool_id)}`;
    const made = await put(slots, asked.current.requestId, (step, isFirst, isLast) =>
      isFirst
        ? // A large pool opens when it is complete.
          post<PoolView>('/admin/pools', { pool_id, ...step, ...rules, is_active: isLast })
        : post<PoolView>(path, { add_slots: step.slots, request_id: step.request_id }),
    );
    // The first press may have made it, with the rules of then: those of now hold.
    const pool =
      made.is_active && !isAgain ? made : await post<PoolView>(path, { ...rules, is_active: true });
    say(`Pool ${pool.pool_id} is there.`, 'good', poolAudit(pool.pool_id));
    onCreated(pool);
  };
  return (
    <FormDialog title="New pool" action="Create pool" submit={submit} onClose={onClose}>
      <div class="fields">
        <Field name="pool_id" label="Name" isRequired {...POOL_NAME} />
        <Field name="slots" label="Slots" type="number" isRequired min={0} max={MAX_SLOTS} value="1000" />
      </div>
      <RuleFields />
      {bar}
    </FormDialog>
  );
}
