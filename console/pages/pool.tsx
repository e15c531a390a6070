import { useState } from 'preact/hooks';
import { get, pathWith, post } from '../lib/api.ts';
import { plural } from '../lib/format.ts';
import { poolAudit } from '../lib/links.ts';
import { listLetters } from '../lib/lists.ts';
import { useLive } from '../lib/live.ts';
import { useLoad } from '../lib/load.ts';
import { Link } from '../lib/router.tsx';
import type { PoolView } from '../lib/shapes.ts';
import { useSubmit } from '../lib/submit.ts';
import { ReasonDialog, reasonOf } from '../parts/form_dialog.tsx';
import { LevelBar } from '../parts/levels.tsx';
import { May, useMay } from '../parts/may.tsx';
import { SaveEnd } from '../parts/save_form.tsx';
import { Card, PageHead } from '../parts/small.tsx';
import { Await, Trouble } from '../parts/states.tsx';
import { say } from '../parts/toast.tsx';
import { HookTroubles } from '../parts/troubles.tsx';
import { AddSlots } from './add_slots.tsx';
import { Details } from './pool_details.tsx';
import { CarryFields, changesOf, PaymentFields, RuleFields } from './pool_rules.tsx';

const CHANGE = 'POST /admin/pools/:pool';

type Change = (changes: Record<string, unknown>, said: string) => Promise<void>;

const pathOf = (pool: string): string => `/admin/pools/${encodeURIComponent(pool)}`;

function Rules({ pool, change }: { pool: PoolView; change: Change }) {
  const { isBusy, error, run } = useSubmit();
  const mayChange = useMay(CHANGE);
  const [sent, setSent] = useState<Record<string, unknown>>({});
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const changes = changesOf(form);
    setSent(changes);
    if (Object.keys(changes).length === 0) say('No rule was changed.');
    else void run(() => change({ ...changes, ...reasonOf(form) }, 'The rules are saved.'));
  };
  const errorOf = (name: string): string | undefined =>
    error !== undefined && name in sent && isAbout(error.hint, name) ? error.hint : undefined;
  const isShown = Object.keys(sent).some((name) => errorOf(name) !== undefined);
  return (
    <form class="form-cards" onSubmit={onSubmit}>
      <Card title="Rules">
        <fieldset class="bare" disabled={!mayChange}>
          <RuleFields pool={pool} errorOf={errorOf} />
        </fieldset>
      </Card>
      <Card title="Payment">
        <fieldset class="bare" disabled={!mayChange}>
          <PaymentFields pool={pool} errorOf={errorOf} />
        </fieldset>
      </Card>
      <Card title="How it is carried to the ledger">
        <fieldset class="bare" disabled={!mayChange}>
          <CarryFields pool={pool} errorOf={errorOf} />
        </fieldset>
        <SaveEnd do={CHANGE} action="Save rules" isBusy={isBusy}>
          {error && !isShown && <Trouble error={error} />}
          {isShown && (
            <p class="field-error" role="alert">
              Nothing was saved: see the field above.
            </p>
          )}
        </SaveEnd>
      </Card>
    </form>
  );
}

/** The server names the field, or says "the hook URL". */
const isAbout = (hint: string, name: string): boolean =>
  hint.includes(name) || (name.endsWith('_webhook_url') && hint.includes('hook URL'));

function OpenOrClose({ pool, change, onClose }: { pool: PoolView; change: Change; onClose(): void }) {
  const { is_active } = pool;
  const verb = is_active ? 'Close pool' : 'Open pool';
  const said = is_active ? 'The pool is closed.' : 'The pool is open.';
  return (
    <ReasonDialog
      title={verb}
      action={`Yes, ${verb.toLowerCase()}`}
      isDanger={is_active}
      hint="For the audit log."
      change={(reason) => change({ is_active: !is_active, ...reason }, said)}
      onClose={onClose}
    >
      {is_active
        ? 'The server refuses buyers from now on, until you open the pool again. Claims that were made go on.'
        : 'Buyers can claim at once, within the opening times of the pool.'}
    </ReasonDialog>
  );
}

/** Some of what is held may be among the dead letters, where nothing moves without an operator. */
function HeldBack({ pool }: { pool: string }) {
  const { value } = useLoad(`letters of ${pool}`, () => listLetters({ pool_id: pool }));
  if (value === undefined || value.items.length === 0) return null;
  const letters = plural(value.items.length, 'dead letter');
  return (
    <p class="trouble-title">
      <Link to={pathWith('/dead-letters', { pool_id: pool })}>
        {value.next === null ? letters : `${letters} or more`}
      </Link>{' '}
      of this pool: held until an operator replays or discards them.
    </p>
  );
}

function PoolHead({ pool, change, onAdded }: { pool: PoolView; change: Change; onAdded(): void }) {
  const [shown, setShown] = useState<'slots' | 'switch'>();
  const close = (): void => setShown(undefined);
  return (
    <>
      <PageHead title={pool.pool_id} state={pool.status}>
        <a class="button" href={`/drop/${encodeURIComponent(pool.pool_id)}`}>
          Buyer's page
        </a>
        <Link class="button" to={pathWith('/claims', { pool_id: pool.pool_id })}>
          Claims
        </Link>
        <Link class="button" to={pathWith('/history', { range: '24h', of: `pool ${pool.pool_id}` })}>
          History
        </Link>
        {pool.confirm_by === 'payment' && (
          <Link class="button" to={pathWith('/orders', { pool_id: pool.pool_id })}>
            Orders
          </Link>
        )}
        {pool.validation_webhook_url !== null && (
          <Link class="button" to={pathWith('/claims', { pool_id: pool.pool_id, state: 'refused' })}>
            Refused claims
          </Link>
        )}
        <May do={CHANGE}>
          <button type="button" class="button" onClick={() => setShown('slots')}>
            Add slots
          </button>
          <button
            type="button"
            class={`button ${pool.is_active ? 'button-danger' : 'button-main'}`}
            onClick={() => setShown('switch')}
          >
            {pool.is_active ? 'Close pool…' : 'Open pool…'}
          </button>
        </May>
      </PageHead>
      {shown === 'slots' && <AddSlots pool={pool.pool_id} onAdded={onAdded} onClose={close} />}
      {shown === 'switch' && <OpenOrClose pool={pool} change={change} onClose={close} />}
    </>
  );
}

export function Pool({ parameter }: { parameter: string }) {
  const loaded = useLoad(`pool ${parameter}`, () => get<PoolView>(pathOf(parameter)));
  const { latest } = useLive();
  const change: Change = async (changes, said) => {
    await post<PoolView>(pathOf(parameter), changes);
    loaded.reload();
    say(said, 'good', poolAudit(parameter));
  };
  return (
    <Await loaded={loaded}>
      {(pool) => (
        <>
          <PoolHead pool={pool} change={change} onAdded={loaded.reload} />
          <HookTroubles pool={pool} />
          <Card title="Slots">
            <LevelBar level={latest?.pools?.find(({ pool_id }) => pool_id === parameter) ?? pool} hasLegend />
            <HeldBack pool={parameter} />
          </Card>
          <Details pool={parameter} />
          <Rules key={JSON.stringify(pool)} pool={pool} change={change} />
        </>
      )}
    </Await>
  );
}
