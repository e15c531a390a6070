import { useState } from 'preact/hooks';
import { ApiError, signIn } from '../lib/api.ts';
import { Field } from '../parts/fields.tsx';
import { Mark } from '../parts/icons.tsx';

export function SignIn() {
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const onSubmit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const data = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    try {
      await signIn(String(data.get('key')).trim());
    } catch (cause) {
      setError(cause instanceof ApiError ? cause : undefined);
      setBusy(false);
    }
  };
  return (
    <main class="sign-in">
      <form class="card sign-in-card" onSubmit={onSubmit}>
        <p class="sign-in-brand">
          <Mark /> Sluice
        </p>
        <h1>Sign in to the console</h1>
        <Field
          name="key"
          label="Your key"
          type="password"
          isRequired
          autoFocus
          autoComplete="current-password"
          hint="From sluice operators add; the audit log names you by it. The first one is SLUICE_ADMIN_KEY of this server; after npm start it is in .sluice/env."
        />
        {error && (
          <p class="form-error" role="alert">
            {error.status === 401 ? 'This key is not known here.' : `${error.message} ${error.hint}`}
          </p>
        )}
        <button type="submit" class="button button-main" disabled={isBusy}>
          {isBusy ? 'Signing in…' : 'Sign in'}
        </button>
      </form>
    </main>
  );
}
