// The rules of a pool as fields of a form, and back.

import type { VNode } from 'preact';
import { changedOf } from '../lib/changes.ts';
import type { PoolView } from '../lib/shapes.ts';
import { fromField } from '../lib/zone.ts';
import { Check, Choice, Field, type FieldProps, TimeField } from '../parts/fields.tsx';

type Rules = Pick<
  PoolView,
  | 'opens_at'
  | 'closes_at'
  | 'max_per_user'
  | 'max_per_address'
  | 'challenge_difficulty'
  | 'hold_sec'
  | 'commit_rate_per_sec'
  | 'require_auth'
  | 'allow_guests'
  | 'max_quantity'
>;

/** As the API has them. */
const MAX_VISIBILITY_SEC = 43_200;
const LEAST_DIFFICULTY = 1_000;
const MAX_DIFFICULTY = 100_000_000;
/** With one, no claim would be tried at all. */
const LEAST_ATTEMPTS = 2;
const MAX_ATTEMPTS = 1_000;
const MAX_QUANTITY = 10;
const GRACE_SEC = { min: 5, max: 600 };

/** What the server said against a field. */
type ErrorOf = (name: string) => string | undefined;

type MakeField = (name: keyof PoolView, label: string, hint: string, more?: Partial<FieldProps>) => VNode;

const fieldsOf =
  (pool: PoolView | undefined, errorOf: ErrorOf): MakeField =>
  (name, label, hint, more) => (
    <Field
      name={name}
      label={label}
      hint={hint}
      value={pool?.[name]?.toString()}
      error={errorOf(name)}
      {...more}
    />
  );

export function RuleFields({
  pool,
  errorOf = () => undefined,
}: {
  pool?: PoolView;
  errorOf?: ErrorOf | undefined;
}) {
  const field = fieldsOf(pool, errorOf);
  const number = { type: 'number', min: 1 } as const;
  return (
    <div class="fields">
      <TimeField
        name="opens_at"
        label="Opens"
        hint="Empty: at once."
        at={pool?.opens_at}
        error={errorOf('opens_at')}
      />
      <TimeField
        name="closes_at"
        label="Closes"
        hint="Empty: never."
        at={pool?.closes_at}
        error={errorOf('closes_at')}
      />
      {field('max_per_user', 'Slots per user', 'Empty: any number.', number)}
      {field(
        'max_per_address',
        'Slots per address',
        'Of all buyers behind one network address. Empty: any number.',
        number,
      )}
      {field(
        'challenge_difficulty',
        'Challenge',
        'Proof of work of about half this many hashes. Empty: none.',
        {
          ...number,
          min: LEAST_DIFFICULTY,
          max: MAX_DIFFICULTY,
        },
      )}
      {field('max_quantity', 'Slots per request', 'All of them or none; 10 at most.', {
        ...number,
        max: MAX_QUANTITY,
        isRequired: true,
        value: String(pool?.max_quantity ?? 1),
      })}
      {field('hold_sec', 'Hold, seconds', 'Empty: a claim does not expire.', number)}
      {field(
        'commit_rate_per_sec',
        'Throttle, tickets per second',
        'The most tickets a second. Empty: as fast as possible.',
        number,
      )}
      <Check name="require_auth" label="Only signed-in users" isChecked={pool?.require_auth ?? false} />
      <Check
        name="allow_guests"
        label="Anonymous sign-ins count as signed in"
        isChecked={pool?.allow_guests ?? false}
      />
    </div>
  );
}

/** How a pool's claims are carried to the ledger. */
export function CarryFields({ pool, errorOf }: { pool: PoolView; errorOf: ErrorOf }) {
  const field = fieldsOf(pool, errorOf);
  const upTo = (max: number, min = 1) => ({ type: 'number', isRequired: true, min, max }) as const;
  return (
    <div class="fields">
      {field(
        'visibility_timeout_sec',
        'Visibility timeout, seconds',
        'The lease on its messages, if longer than that of the workers: 60, or 90 in the Edge Function.',
        upTo(MAX_VISIBILITY_SEC),
      )}
      {field(
        'max_retries',
        'Dead letter at attempt',
        'This attempt is not made: 10 allows nine that fail. A delivery that meets an outage is not an attempt.',
        upTo(MAX_ATTEMPTS, LEAST_ATTEMPTS),
      )}
      {field('commit_rpc_name', 'Commits by', 'The function of the ledger that writes a ticket.', {
        isRequired: true,
        pattern: '[a-z_][a-z0-9_]{0,62}',
      })}
      {field('commit_webhook_url', 'Commit hook', 'Workers ask it instead of the function. Empty: none.', {
        isWide: true,
      })}
      {field(
        'validation_webhook_url',
        'Validation hook',
        'Workers ask it before they write a ticket. Empty: none.',
        { isWide: true },
      )}
    </div>
  );
}

/** What makes a ticket of a claim. */
export function PaymentFields({ pool, errorOf }: { pool: PoolView; errorOf: ErrorOf }) {
  const field = fieldsOf(pool, errorOf);
  return (
    <div class="fields">
      <Choice
        name="confirm_by"
        label="A claim is a ticket"
        value={pool.confirm_by}
        options={[
          ['auto', 'at once'],
          ['payment', 'once it is paid'],
        ]}
      />
      {field('price', 'Price of one slot', 'In minor units: 2500 is 25.00.', { type: 'number', min: 1 })}
      {field('currency', 'Currency', 'Three small letters, such as eur.', { pattern: '[a-z]{3}' })}
      {field(
        'payment_tenant',
        'Payments of',
        'The tenant of the endpoint that receives them, such as stripe.',
      )}
      {field('expire_grace_sec', 'Grace, seconds', 'How long an expired hold waits for the provider.', {
        type: 'number',
        isRequired: true,
        ...GRACE_SEC,
      })}
      <Choice
        name="refund_by"
        label="What cannot buy is sent back"
        value={pool.refund_by}
        options={[
          ['sluice', 'by Sluice, at once'],
          ['operator', 'by an operator, after a look'],
        ]}
      />
      <Check name="payment_livemode" label="Real payments, not test ones" isChecked={pool.payment_livemode} />
    </div>
  );
}

export const changesOf = (form: HTMLFormElement): Record<string, unknown> =>
  changedOf(form, { ...rulesOf(form), ...carryOf(form), ...paymentOf(form) });

function paymentOf(form: HTMLFormElement): Record<string, unknown> {
  const data = new FormData(form);
  const text = (name: string): string => String(data.get(name) ?? '').trim();
  return {
    confirm_by: text('confirm_by'),
    price: text('price') === '' ? null : Number(text('price')),
    currency: text('currency') || null,
    payment_tenant: text('payment_tenant') || null,
    payment_livemode: data.has('payment_livemode'),
    expire_grace_sec: Number(text('expire_grace_sec')),
    refund_by: text('refund_by'),
  };
}

function carryOf(form: HTMLFormElement): Record<string, unknown> {
  const data = new FormData(form);
  const text = (name: string): string => String(data.get(name) ?? '').trim();
  return {
    visibility_timeout_sec: Number(text('visibility_timeout_sec')),
    max_retries: Number(text('max_retries')),
    commit_rpc_name: text('commit_rpc_name'),
    commit_webhook_url: text('commit_webhook_url') || null,
    validation_webhook_url: text('validation_webhook_url') || null,
  };
}

export function rulesOf(form: HTMLFormElement): Rules {
  const data = new FormData(form);
  const text = (name: string): string => String(data.get(name) ?? '');
  const number = (name: string): number | null => (text(name) === '' ? null : Number(text(name)));
  const time = (name: string): string | null =>
    text(name) === '' ? null : fromField(text(name)).toISOString();
  return {
    opens_at: time('opens_at'),
    closes_at: time('closes_at'),
    max_per_user: number('max_per_user'),
    max_per_address: number('max_per_address'),
    challenge_difficulty: number('challenge_difficulty'),
    hold_sec: number('hold_sec'),
    commit_rate_per_sec: number('commit_rate_per_sec'),
    require_auth: data.has('require_auth'),
    allow_guests: data.has('allow_guests'),
    max_quantity: number('max_quantity') ?? 1,
  };
}
