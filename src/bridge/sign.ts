import { Webhook } from 'standardwebhooks';
import { createSign, type SignHook } from '#core/bridge/hook_request.ts';
import { StackError } from '../failure.ts';

export const HOOK_SECRET = 'SLUICE_HOOK_SECRET';
export const MAKE_HOOK_SECRET = `${HOOK_SECRET}="whsec_$(openssl rand -base64 32)"`;

/** Signs hooks with these secrets, of the variable `name`; undefined if there are none. An invalid secret stops the command. */
export function readSign(secrets: string | undefined, name = HOOK_SECRET): SignHook | undefined {
  try {
    return createSign(secrets, (secret) => new Webhook(secret));
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new StackError(
      `${name}: ${error.message}`,
      `make one with: ${MAKE_HOOK_SECRET.replace(HOOK_SECRET, name)}`,
      error,
    );
  }
}
