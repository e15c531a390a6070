import { post } from '../lib/api.ts';
import type { PoolView } from '../lib/shapes.ts';
import { useSubmit } from '../lib/submit.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Field } from '../parts/fields.tsx';
import { Trouble } from '../parts/states.tsx';
import { say } from '../parts/toast.tsx';
import { RuleFields, rulesOf } from './pool_rules.tsx';

const MAX_SLOTS = 1_000_000;

export function NewPool({ onClose, onCreated }: { onClose(): void; onCreated(pool: PoolView): void }) {
  const { isBusy, error, run } = useSubmit();
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const data = new FormData(form);
    void run(async () => {
      const pool = await post<PoolView>('/admin/pools', {
        pool_id: String(data.get('pool_id')),
        slots: Number(data.get('slots')),
        ...rulesOf(form),
      });
      say(`Pool ${pool.pool_id} is there.`);
      onCreated(pool);
    });
  };
  return (
    <Dialog title="New pool" onClose={onClose}>
      <form onSubmit={onSubmit}>
        <div class="fields">
          <Field
            name="pool_id"
            label="Name"
            isRequired
            pattern="[A-Za-z0-9._~:@\-]+"
            hint="Letters, digits and . _ ~ : @ -"
          />
          <Field name="slots" label="Slots" type="number" isRequired min={0} max={MAX_SLOTS} value="1000" />
        </div>
        <RuleFields />
        {error && <Trouble error={error} />}
        <footer class="dialog-foot">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button button-main" disabled={isBusy}>
            {isBusy ? 'Creating…' : 'Create pool'}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
