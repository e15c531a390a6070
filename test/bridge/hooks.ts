// Hooks for tests that call them without a pool, whose rules would say which hosts are allowed.

import type { SignHook } from '#core/bridge/hook_request.ts';
import type { Hook } from '#core/bridge/ports.ts';
import { createHook } from '../../src/bridge/hook.ts';

/** Calls as for a pool of an owner who has allowed these hosts. */
export function hookAllowing(allowedHosts: readonly string[], sign?: SignHook): Hook {
  const hook = createHook(sign);
  return { post: (call) => hook.post({ ...call, allowedHosts }) };
}
