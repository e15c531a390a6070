import { useState } from 'preact/hooks';
import { get, pathWith, post } from '../lib/api.ts';
import { useLive } from '../lib/live.ts';
import { useLoad } from '../lib/load.ts';
import { Link } from '../lib/router.tsx';
import type { PoolView } from '../lib/shapes.ts';
import { useSubmit } from '../lib/submit.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Field } from '../parts/fields.tsx';
import { LevelBar } from '../parts/levels.tsx';
import { Card, Facts, PageHead } from '../parts/small.tsx';
import { Await, Trouble } from '../parts/states.tsx';
import { say } from '../parts/toast.tsx';
import { RuleFields, rulesOf } from './pool_rules.tsx';

type Change = (changes: Record<string, unknown>, said: string) => Promise<void>;

const pathOf = (pool: string): string => `/admin/pools/${encodeURIComponent(pool)}`;

function Rules({ pool, change }: { pool: PoolView; change: Change }) {
  const { isBusy, error, run } = useSubmit();
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault();
    const rules = rulesOf(event.currentTarget as HTMLFormElement);
    void run(() => change({ ...rules }, 'The rules are saved.'));
  };
  return (
    <Card title="Rules">
      <form onSubmit={onSubmit}>
        <RuleFields pool={pool} />
        {error && <Trouble error={error} />}
        <p>
          <button type="submit" class="button button-main" disabled={isBusy}>
            Save rules
          </button>
        </p>
      </form>
    </Card>
  );
}

function AddSlots({ change, onClose }: { change: Change; onClose(): void }) {
  const { isBusy, error, run } = useSubmit();
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault();
    const slots = Number(new FormData(event.currentTarget as HTMLFormElement).get('slots'));
    void run(async () => {
      await change({ add_slots: slots }, `${slots} slots more are on sale.`);
      onClose();
    });
  };
  return (
    <Dialog title="Add slots" onClose={onClose}>
      <form onSubmit={onSubmit}>
        <Field name="slots" label="How many" type="number" isRequired min={1} max={1_000_000} />
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

function PoolHead({ pool, change }: { pool: PoolView; change: Change }) {
  const { isBusy, error, run } = useSubmit();
  const [isAdding, setAdding] = useState(false);
  const flip = (): void => {
    const said = pool.is_active ? 'The pool is closed.' : 'The pool is open.';
    void run(() => change({ is_active: !pool.is_active }, said));
  };
  return (
    <>
      <PageHead title={pool.pool_id} state={pool.status}>
        <a class="button" href={`/drop/${encodeURIComponent(pool.pool_id)}`}>
          Buyer's page
        </a>
        <Link class="button" to={pathWith('/claims', { pool_id: pool.pool_id })}>
          Claims
        </Link>
        <button type="button" class="button" onClick={() => setAdding(true)}>
          Add slots
        </button>
        <button
          type="button"
          class={`button ${pool.is_active ? 'button-danger' : 'button-main'}`}
          disabled={isBusy}
          onClick={flip}
        >
          {pool.is_active ? 'Close pool' : 'Open pool'}
        </button>
      </PageHead>
      {error && <Trouble error={error} />}
      {isAdding && <AddSlots change={change} onClose={() => setAdding(false)} />}
    </>
  );
}

export function Pool({ parameter }: { parameter: string }) {
  const loaded = useLoad(`pool ${parameter}`, () => get<PoolView>(pathOf(parameter)));
  const { latest } = useLive();
  const change: Change = async (changes, said) => {
    await post<PoolView>(pathOf(parameter), changes);
    loaded.reload();
    say(said);
  };
  return (
    <Await loaded={loaded}>
      {(pool) => (
        <>
          <PoolHead pool={pool} change={change} />
          <Card title="Slots">
            <LevelBar level={latest?.pools?.find(({ pool_id }) => pool_id === parameter) ?? pool} hasLegend />
          </Card>
          <Rules key={JSON.stringify(pool)} pool={pool} change={change} />
          <Card title="How it is carried to the ledger">
            <Facts
              facts={[
                ['Commits by', <code key="rpc">{pool.commit_rpc_name}</code>],
                ['Commit webhook', pool.commit_webhook_url],
                ['Validation webhook', pool.validation_webhook_url],
                ['Batch', `${pool.batch_size} messages`],
                ['Visibility timeout', `${pool.visibility_timeout_sec} s`],
                ['Attempts', String(pool.max_retries)],
              ]}
            />
          </Card>
        </>
      )}
    </Await>
  );
}
