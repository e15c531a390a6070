// A list or a page that has nothing to show yet, nothing to show at all, or cannot be shown; and what is wrong with what it shows.

import type { ComponentChildren } from 'preact';
import type { ApiError } from '../lib/api.ts';
import type { Loaded } from '../lib/load.ts';
import { Icon } from './icons.tsx';

export function Skeleton({ rows = 6 }: { rows?: number }) {
  return (
    <div class="skeleton" role="status">
      <span class="sr-only">Loading</span>
      {Array.from({ length: rows }, (_, row) => (
        <span key={row} class="bone" />
      ))}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <svg class="empty-art" viewBox="0 0 120 48" aria-hidden="true">
        <path d="M2 30q10-8 20 0t20 0 20 0 20 0 20 0 16 0M2 40q10-8 20 0t20 0 20 0 20 0 20 0 16 0" />
        <path class="empty-gate" d="M60 4v18" />
      </svg>
      <p class="empty-title">{title}</p>
      {children && <p class="muted">{children}</p>}
    </div>
  );
}

/** For people: what the API says to programs about a server that is away is about headers and request ids. */
const hintOf = (error: ApiError): string =>
  error.status === 503 ? 'It may be back in a moment.' : error.hint;

export function Trouble({ error, onRetry }: { error: ApiError; onRetry?: () => void }) {
  return (
    <div class={`trouble ${error.isOutage ? 'trouble-outage' : ''}`} role="alert">
      <Icon name="alarm" />
      <div>
        <p class="trouble-title">{error.message}</p>
        <p>
          {hintOf(error)} {error.isOutage && onRetry && 'This page tries again by itself.'}
        </p>
        {error.requestId && <p class="muted">Request {error.requestId}</p>}
      </div>
      {onRetry && (
        <button type="button" class="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** What is wrong with the thing that a page shows, and what to do about it. */
export function Fault({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="trouble" role="alert">
      <Icon name="alarm" />
      <div>
        <p class="trouble-title">{title}</p>
        {children}
      </div>
    </div>
  );
}

/** One line above the page. */
export function Alarm({ tone, children }: { tone: 'bad' | 'warn'; children: ComponentChildren }) {
  return (
    <div class={`alarm alarm-${tone}`}>
      <Icon name="alarm" />
      <p>{children}</p>
    </div>
  );
}

/** Skeleton, trouble or content; what was there before an outage stays in view below the trouble. */
export function Await<Value>({
  loaded,
  children,
}: {
  loaded: Loaded<Value>;
  children: (value: Value) => ComponentChildren;
}) {
  const { value, error, isBusy, reload } = loaded;
  return (
    <div class="await" aria-busy={isBusy}>
      {error && <Trouble error={error} onRetry={reload} />}
      {value === undefined ? !error && <Skeleton /> : children(value)}
    </div>
  );
}
