// The rules of a pool as fields of a form, and back.

import type { PoolView } from '../lib/shapes.ts';
import { Check, Field } from '../parts/fields.tsx';

type Rules = Pick<
  PoolView,
  'opens_at' | 'closes_at' | 'max_per_user' | 'hold_sec' | 'commit_rate_per_sec' | 'require_auth'
>;

const toField = (value: number | null | undefined): string | undefined => value?.toString();

/** An instant as the browser's field for local time spells it. */
function toLocal(at: string | null | undefined): string | undefined {
  if (!at) return undefined;
  const date = new Date(at);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

export function RuleFields({ pool }: { pool?: PoolView }) {
  return (
    <div class="fields">
      <Field
        name="opens_at"
        label="Opens"
        type="datetime-local"
        value={toLocal(pool?.opens_at)}
        hint="Empty: at once."
      />
      <Field
        name="closes_at"
        label="Closes"
        type="datetime-local"
        value={toLocal(pool?.closes_at)}
        hint="Empty: never."
      />
      <Field
        name="max_per_user"
        label="Slots per user"
        type="number"
        min={1}
        value={toField(pool?.max_per_user)}
        hint="Empty: any number."
      />
      <Field
        name="hold_sec"
        label="Hold, seconds"
        type="number"
        min={1}
        value={toField(pool?.hold_sec)}
        hint="Empty: a claim does not run out."
      />
      <Field
        name="commit_rate_per_sec"
        label="Throttle, tickets per second"
        type="number"
        min={1}
        value={toField(pool?.commit_rate_per_sec)}
        hint="How fast the ledger is written. Empty: as fast as it goes."
      />
      <Check name="require_auth" label="Only signed-in users" isChecked={pool?.require_auth ?? false} />
    </div>
  );
}

export function rulesOf(form: HTMLFormElement): Rules {
  const data = new FormData(form);
  const text = (name: string): string => String(data.get(name) ?? '');
  const number = (name: string): number | null => (text(name) === '' ? null : Number(text(name)));
  const time = (name: string): string | null =>
    text(name) === '' ? null : new Date(text(name)).toISOString();
  return {
    opens_at: time('opens_at'),
    closes_at: time('closes_at'),
    max_per_user: number('max_per_user'),
    hold_sec: number('hold_sec'),
    commit_rate_per_sec: number('commit_rate_per_sec'),
    require_auth: data.has('require_auth'),
  };
}
