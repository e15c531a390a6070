// What a page loads: the first time with a skeleton, afterwards with the old content in view. After an outage it tries again
// by itself.

import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from './api.ts';

const RETRY_MS = 3_000;

export interface Loaded<Value> {
  readonly value: Value | undefined;
  readonly error: ApiError | undefined;
  readonly isBusy: boolean;
  reload(): void;
}

const asApiError = (error: unknown): ApiError =>
  error instanceof ApiError ? error : new ApiError(-1, 'broken', String(error), 'Reload the page.');

/** Loads anew when `key` changes. */
export function useLoad<Value>(key: string, load: () => Promise<Value>): Loaded<Value> {
  const [state, setState] = useState<{ key: string; value?: Value; error?: ApiError; isBusy: boolean }>({
    key,
    isBusy: true,
  });
  const [round, setRound] = useState(0);
  const latest = useRef(load);
  latest.current = load;

  // A new round asks the same question again.
  useEffect(() => {
    let isCurrent = true;
    let timer: number | undefined;
    setState((old) => (old.key === key ? { ...old, isBusy: true } : { key, isBusy: true }));
    latest.current().then(
      (value) => isCurrent && setState({ key, value, isBusy: false }),
      (cause: unknown) => {
        if (!isCurrent) return;
        const error = asApiError(cause);
        setState((old) => ({ ...old, error, isBusy: false }));
        if (error.isOutage) timer = window.setTimeout(() => setRound((last) => last + 1), RETRY_MS);
      },
    );
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [key, round]);

  const reload = useCallback(() => setRound((last) => last + 1), []);
  const isOld = state.key !== key;
  return {
    value: isOld ? undefined : state.value,
    error: isOld ? undefined : state.error,
    isBusy: isOld || state.isBusy,
    reload,
  };
}

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}

export interface Pages<Item> extends Loaded<readonly Item[]> {
  readonly hasMore: boolean;
  /** Why the list could not be continued; nobody but the one who asks again tries again. */
  readonly moreError: ApiError | undefined;
  more(): Promise<void>;
}

/** A list, page by page. */
export function usePages<Item>(
  key: string,
  load: (after: string | undefined) => Promise<Page<Item>>,
): Pages<Item> {
  const first = useLoad(key, () => load(undefined));
  const [rest, setRest] = useState<{ of: unknown; items: readonly Item[]; next: string | null }>();
  const [failed, setFailed] = useState<{ of: unknown; error: ApiError }>();
  const own = rest !== undefined && rest.of === first.value ? rest : undefined;
  const next = own === undefined ? (first.value?.next ?? null) : own.next;
  return {
    ...first,
    value: first.value && [...first.value.items, ...(own?.items ?? [])],
    hasMore: next !== null,
    moreError: failed?.of === first.value ? failed?.error : undefined,
    async more() {
      if (next === null) return;
      try {
        const page = await load(next);
        setRest({ of: first.value, items: [...(own?.items ?? []), ...page.items], next: page.next });
        setFailed(undefined);
      } catch (cause) {
        setFailed({ of: first.value, error: asApiError(cause) });
      }
    },
  };
}
