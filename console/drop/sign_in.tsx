// Signing in: the way to the login, who is signed in, and what became of it.

import { useEffect, useState } from 'preact/hooks';
import type { Api } from './api.ts';
import { Title, Words } from './parts.tsx';
import { delayOf, type Pace } from './pause.ts';
import { loginLink, type Sessions, type SignedIn } from './session.ts';

const ASK_AGAIN: Pace = { firstMs: 1_000, factor: 2, mostMs: 10_000 };

/** Null where the operator has set no login; undefined until that is known. */
function useLogin(api: Api): string | null | undefined {
  const [login, setLogin] = useState<string | null>();
  const [tries, setTries] = useState(0);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async () => {
      const answer = await api.getLogin();
      if (answer.kind === 'ok') setLogin(answer.value.login_url);
      else timer = setTimeout(() => setTries(tries + 1), delayOf(ASK_AGAIN, tries));
    };
    void ask();
    return () => clearTimeout(timer);
  }, [tries]);
  return login;
}

export function SignIn({ api, sessions, isGuest }: { api: Api; sessions: Sessions; isGuest: boolean }) {
  const login = useLogin(api);
  if (login === null)
    return (
      <Words
        title="For people who are signed in"
        text="Seats of this drop are sold to signed-in people only, and the organiser has not set up a sign-in for this page. Buy on the organiser’s own site or app."
      />
    );
  return (
    <Words
      title={isGuest ? 'Not for guests' : 'Sign in to buy'}
      text={
        isGuest
          ? 'This drop does not sell seats to guests. Sign in with your own account; you come back to this page.'
          : 'This drop sells seats to signed-in people only. You come back to this page afterwards.'
      }
      isBusy={login === undefined}
    >
      {login !== undefined && (
        <a class="big" href={loginLink(login, location)} onClick={() => sessions.leave()}>
          Sign in
        </a>
      )}
    </Words>
  );
}

/** Above the scene: who buys here, and what the person has to know about it. */
export function Who({ signedIn, sessions }: { signedIn: SignedIn; sessions: Sessions }) {
  const { session, offered, trouble } = signedIn;
  if (offered !== undefined)
    return (
      <section class="who" aria-label="Sign-in">
        <Title>Is this you?</Title>
        <p class="lead">
          A link signs you in as <b>{offered.name}</b>. Tickets that you buy would belong to that account. Go
          on only if it is yours.
        </p>
        <p class="who-acts">
          <button type="button" class="quiet" onClick={() => sessions.accept()}>
            Yes, go on as {offered.name}
          </button>
          <button type="button" class="quiet" onClick={() => sessions.signOut()}>
            No
          </button>
        </p>
      </section>
    );
  return (
    <>
      {trouble !== undefined && (
        <p class="banner" role="alert">
          {TROUBLES[trouble]}
        </p>
      )}
      {session !== undefined && (
        <p class="who who-acts">
          <span>
            Signed in as <b>{session.name}</b>
          </span>
          <button type="button" class="quiet" onClick={() => sessions.signOut()}>
            Sign out
          </button>
        </p>
      )}
    </>
  );
}

const TROUBLES: Readonly<Record<NonNullable<SignedIn['trouble']>, string>> = {
  ended: 'Your sign-in has ended. Sign in again: your request is kept.',
  failed: 'The sign-in did not work. You are not signed in.',
};
