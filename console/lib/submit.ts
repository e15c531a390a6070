// A form on its way to the server: busy, refused, or done.

import { useState } from 'preact/hooks';
import { type ApiError, asApiError } from './api.ts';

export interface Submission {
  readonly isBusy: boolean;
  readonly error: ApiError | undefined;
  run(work: () => Promise<void>): Promise<void>;
}

export function useSubmit(): Submission {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  return {
    isBusy,
    error,
    async run(work) {
      setBusy(true);
      setError(undefined);
      try {
        await work();
      } catch (cause) {
        setError(asApiError(cause));
      } finally {
        setBusy(false);
      }
    },
  };
}
