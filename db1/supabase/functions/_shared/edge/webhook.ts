// Calls to the webhooks of pools with `fetch`. The name is resolved and judged just before the call. Unlike on Node, the
// connection resolves it once more: a name that changes its answer in between is not caught here.

import { isRefusedAddress, refusalOfUrl } from '../bridge/address.ts';
import type { Webhook } from '../bridge/ports.ts';
import { Unreachable } from '../bridge/unreachable.ts';

/** Resolves to the addresses of a name; rejects as Deno.resolveDns does. */
export type ResolveDns = (name: string, type: 'A' | 'AAAA') => Promise<string[]>;

/** A webhook that takes longer is down, as far as a queue is concerned. */
const TIMEOUT_MS = 10_000;

const NOT_PERMITTED: ReadonlySet<string> = new Set(['NotCapable', 'PermissionDenied', 'NotSupported']);

export function createEdgeWebhook(
  allowedHosts: ReadonlySet<string>,
  resolveDns: ResolveDns | undefined,
): Webhook {
  return {
    async post({ url: target, payload, idempotencyKey, allowedHosts: more, signal }) {
      const allowed = new Set([...allowedHosts, ...more]);
      const refusal = refusalOfUrl(target, allowed);
      if (refusal !== undefined) throw new Unreachable(`the webhook's URL is ${refusal}`);
      const url = new URL(target);
      const isAllowed = allowed.has(url.host) || allowed.has(url.hostname);
      if (!isAllowed && resolveDns !== undefined) await refusePrivateName(url.hostname, resolveDns);
      const response = await fetch(url, {
        method: 'POST',
        redirect: 'manual',
        headers: { 'content-type': 'application/json', 'x-idempotency-key': idempotencyKey },
        body: JSON.stringify(payload),
        signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      }).catch((error: unknown) => {
        throw isUnconnected(error) ? new Unreachable('no connection', { cause: error }) : error;
      });
      // The status is all we need.
      await response.body?.cancel();
      return response.status;
    },
  };
}

/** Deno says it in words only: "client error (Connect)" covers DNS, TCP and TLS. A timeout says nothing of where. */
function isUnconnected(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return /client error \(Connect\)/.test(error.message) || isUnconnected(error.cause);
}

async function refusePrivateName(hostname: string, resolveDns: ResolveDns): Promise<void> {
  // An address needs no resolving, and has been judged with the URL.
  if (hostname.startsWith('[') || /^[\d.]+$/.test(hostname)) return;
  const answers = await Promise.all([
    addressesOf(hostname, 'A', resolveDns),
    addressesOf(hostname, 'AAAA', resolveDns),
  ]);
  // Where the platform does not let us ask, its own network rules are what is left.
  if (answers.includes(undefined)) return;
  const addresses = answers.flatMap((some) => some ?? []);
  if (addresses.length === 0) throw new Unreachable(`${hostname} has no address`);
  if (addresses.some(isRefusedAddress))
    throw new Unreachable(`${hostname} is at a private or special address`);
}

/** Undefined where we may not ask. */
async function addressesOf(
  name: string,
  type: 'A' | 'AAAA',
  resolveDns: ResolveDns,
): Promise<string[] | undefined> {
  try {
    return await resolveDns(name, type);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    if (error.name === 'NotFound') return [];
    if (NOT_PERMITTED.has(error.name)) return undefined;
    throw error;
  }
}
