// What a page loads: the first time with a skeleton, afterwards with the old content in view. After an outage it tries again
// by itself.

import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { type ApiError, asApiError } from './api.ts';

const RETRY_MS = 3_000;

export interface Loaded<Value> {
  readonly value: Value | undefined;
  readonly error: ApiError | undefined;
  readonly isBusy: boolean;
  reload(): void;
}

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
