// Fields of forms, and the bar of filters above a list. Filters live in the address: a search can be sent to a colleague.

import { useId } from 'preact/hooks';
import { pathWith } from '../lib/api.ts';
import { words } from '../lib/format.ts';
import { go, Link, usePlace } from '../lib/router.tsx';
import { useStore } from '../lib/store.ts';
import { toField, zone } from '../lib/zone.ts';

export interface FieldProps {
  name: string;
  label: string;
  type?: 'text' | 'number' | 'password' | 'datetime-local' | 'search';
  value?: string | undefined;
  hint?: string;
  placeholder?: string;
  isRequired?: boolean;
  min?: number;
  max?: number;
  pattern?: string;
  autoComplete?: string;
  autoFocus?: boolean;
  /** As wide as the form: for an address. */
  isWide?: boolean;
  /** Why the server did not take it. */
  error?: string | undefined;
}

export function Field(props: FieldProps) {
  const id = useId();
  const { name, label, type = 'text', hint, isRequired = false, isWide = false, error } = props;
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ');
  return (
    <div class={isWide ? 'field field-wide' : 'field'}>
      <label for={id}>
        {label} {!isRequired && type !== 'search' && <span class="muted">optional</span>}
      </label>
      <input
        id={id}
        name={name}
        // The typings know each type on its own only.
        {...({ type: type === 'search' ? 'text' : type } as { type: 'text' })}
        step={type === 'datetime-local' ? 1 : undefined}
        defaultValue={props.value}
        placeholder={props.placeholder}
        required={isRequired}
        min={props.min}
        max={props.max}
        pattern={props.pattern}
        autoComplete={props.autoComplete ?? 'off'}
        spellcheck={false}
        // biome-ignore lint/a11y/noAutofocus: only where the field is what a person came for, as on the sign-in form.
        autoFocus={props.autoFocus}
        aria-invalid={error !== undefined}
        aria-describedby={described || undefined}
      />
      {error && (
        <p class="field-error" id={`${id}-error`}>
          {error}
        </p>
      )}
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

interface TimeFieldProps extends Omit<FieldProps, 'type' | 'value'> {
  at: string | number | null | undefined;
}

/** A time in the zone that is shown; `fromField` reads it. Another zone makes it anew, so that its digits mean what they say. */
export function TimeField({ at, label, ...field }: TimeFieldProps) {
  const shown = useStore(zone);
  return (
    <Field
      key={shown}
      {...field}
      label={`${label}, ${shown === 'UTC' ? 'UTC' : 'your time'}`}
      type="datetime-local"
      value={at === null || at === undefined ? undefined : toField(at)}
    />
  );
}

/** Several lines. */
export function TextField({
  name,
  label,
  value,
  hint,
}: Pick<FieldProps, 'name' | 'label' | 'value' | 'hint'>) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>
        {label} <span class="muted">optional</span>
      </label>
      <textarea
        id={id}
        name={name}
        rows={4}
        defaultValue={value}
        aria-describedby={hint ? `${id}-hint` : undefined}
      />
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

export function Check({
  name,
  label,
  isChecked = false,
  onToggle,
}: {
  name: string;
  label: string;
  isChecked?: boolean;
  onToggle?(isChecked: boolean): void;
}) {
  return (
    <label class="check">
      <input
        type="checkbox"
        name={name}
        defaultChecked={isChecked}
        onChange={(event) => onToggle?.((event.currentTarget as HTMLInputElement).checked)}
      />{' '}
      {label}
    </label>
  );
}

/** A value, or a value and how it is called. */
type Option = string | readonly [string, string];

export interface Filter {
  name: string;
  label: string;
  options?: readonly Option[];
}

export function Filters({ filters }: { filters: readonly Filter[] }) {
  const { path, query } = usePlace();
  // Another search begins at its first page.
  const kept = [...query].filter(
    ([name]) => !/^(page|after)$/.test(name) && !filters.some((filter) => filter.name === name),
  );
  const isFiltered = filters.some(({ name }) => query.has(name));
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault();
    const data = new FormData(event.currentTarget as HTMLFormElement);
    const values = filters.map(({ name }) => [name, String(data.get(name) ?? '').trim()]);
    go(pathWith(path, Object.fromEntries([...kept, ...values])));
  };
  return (
    // Its key is the query: after "Clear" or "back" the fields show what is asked for.
    <search key={query.toString()} aria-label="Filters">
      <form class="filters" onSubmit={onSubmit}>
        {filters.map(({ name, label, options }) =>
          options ? (
            <Choice
              key={name}
              name={name}
              label={label}
              options={options}
              value={query.get(name) ?? ''}
              hasAny
            />
          ) : (
            <Field key={name} type="search" name={name} label={label} value={query.get(name) ?? ''} />
          ),
        )}
        <div class="filter-actions">
          <button type="submit" class="button">
            Search
          </button>
          {isFiltered && <Link to={pathWith(path, Object.fromEntries(kept))}>Clear</Link>}
        </div>
      </form>
    </search>
  );
}

export interface ChoiceProps {
  name: string;
  label: string;
  options: readonly Option[];
  value: string;
  hint?: string;
  /** May be left open. */
  hasAny?: boolean;
  onChoose?(value: string): void;
}

export function Choice({ name, label, options, value, hint, hasAny = false, onChoose }: ChoiceProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        name={name}
        data-was={value}
        aria-describedby={hint ? `${id}-hint` : undefined}
        onChange={(event) => onChoose?.((event.currentTarget as HTMLSelectElement).value)}
      >
        {hasAny && <option value="">any</option>}
        {options.map((option) => {
          const [own, called] = typeof option === 'string' ? [option, words(option)] : option;
          return (
            <option key={own} value={own} selected={own === value}>
              {called}
            </option>
          );
        })}
      </select>
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

export function Tabs({
  label,
  tabs,
  current,
}: {
  label: string;
  tabs: readonly (readonly [string, string])[];
  current: string;
}) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(([to, name]) => (
        <Link key={to} to={to} isCurrent={to === current}>
          {name}
        </Link>
      ))}
    </nav>
  );
}
