// What an operator sets for buyers: where they sign in, and who checks their challenges.

import { StackError } from '../failure.ts';
import { importDefault } from '../webhook/import_module.ts';
import type { ChallengeVerifier } from './challenge.ts';

export interface BuyerSettings {
  /** Where pages send people who have to sign in; the drop page offers no sign-in if this is left out. */
  loginUrl?: URL;
  /** Takes the place of the proof of work. */
  challengeVerifier?: ChallengeVerifier;
}

export const BUYER_VARIABLES: Readonly<Record<string, string>> = {
  SLUICE_LOGIN_URL:
    'where the drop page sends people who have to sign in, such as https://<project>.supabase.co/auth/v1/authorize?provider=google; optional',
  SLUICE_CHALLENGE_VERIFIER:
    'a module with a verifier of challenges of your own (docs/secure.md); optional: a proof of work without it',
};

export async function readBuyerSettings(env: NodeJS.ProcessEnv): Promise<BuyerSettings> {
  const { SLUICE_LOGIN_URL: login, SLUICE_CHALLENGE_VERIFIER: verifier } = env;
  if (login && !(URL.canParse(login) && /^https?:$/.test(new URL(login).protocol)))
    throw new StackError(
      `SLUICE_LOGIN_URL is "${login}"; it must be an address such as https://login.example.com`,
      'see docs/secure.md, "Signing in on the drop page"',
    );
  const challengeVerifier = await loadChallengeVerifier(verifier);
  return { ...(login && { loginUrl: new URL(login) }), ...(challengeVerifier && { challengeVerifier }) };
}

/** The verifier that the module at `path` exports by default; undefined where no path is given. */
export async function loadChallengeVerifier(
  path: string | undefined,
): Promise<ChallengeVerifier | undefined> {
  if (!path) return undefined;
  const verifier = await importDefault(path, 'the verifier of challenges', 'SLUICE_CHALLENGE_VERIFIER');
  const { issue, verify } = (verifier ?? {}) as Partial<ChallengeVerifier>;
  if (typeof issue !== 'function' || typeof verify !== 'function')
    throw new StackError(
      `${path}: its default export has no functions issue and verify`,
      'see docs/secure.md, "A verifier of your own"',
    );
  return verifier as ChallengeVerifier;
}
