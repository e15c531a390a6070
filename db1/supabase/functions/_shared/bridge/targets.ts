// What a pool's messages depend on: the ledger, a commit function of its own, the addresses of its hooks.

import type { Calls } from './ports.ts';

export const DEFAULT_FUNCTION = 'finalize_transaction';
export const LEDGER = 'ledger';

/** Messages under way to one hook or function. A hook gets all calls at once: at 100 ms an answer, 320 claims a second. */
const CALL_LIMIT = 32;
/** Calls of one function at once: each holds a connection of the ledger while it runs. */
export const FUNCTION_CALLS_AT_ONCE = 4;

/** With a space, so that it can be taken neither for a hook's address nor for its host. */
export function targetOfFunction(functionName: string): string {
  return `${LEDGER} ${functionName}`;
}

export function targetsOf({ validation_webhook_url, commit_webhook_url, commit_rpc_name }: Calls): string[] {
  const validation = validation_webhook_url === null ? [] : [validation_webhook_url];
  if (commit_webhook_url !== null) return [...validation, commit_webhook_url];
  const own = commit_rpc_name === DEFAULT_FUNCTION ? [] : [targetOfFunction(commit_rpc_name)];
  return [...validation, ...own, LEDGER];
}

/** True where the pool's messages go to the ledger as a set; else each is called for by itself. */
export function isSet(calls: Calls): boolean {
  return calls.validation_webhook_url === null && isLedgerAlone(calls);
}

export function isLedgerAlone({ commit_webhook_url, commit_rpc_name }: Calls): boolean {
  return commit_webhook_url === null && commit_rpc_name === DEFAULT_FUNCTION;
}

export function hasHook({ validation_webhook_url, commit_webhook_url }: Calls): boolean {
  return validation_webhook_url !== null || commit_webhook_url !== null;
}

/** Messages that one target has under way; the ledger takes batches. `share` is this process' part of a limit. */
export function limitOf(
  target: string,
  ledgerLimit: number,
  share: (limit: number) => number = (limit) => limit,
): number {
  return target === LEDGER ? ledgerLimit : share(CALL_LIMIT);
}
