// Calls to the hooks of pools with `fetch`. The name is resolved and judged just before the call, and a plain http call
// goes to the address that was judged: a name that changes its answer in between gains nothing. With https `fetch` resolves
// it once more, but nothing is sent before the other side has proven the name by its certificate, which no private service
// can do.

import { isRefusedAddress, refusalOfUrl } from '../bridge/address.ts';
import { headersOf, type SignHook } from '../bridge/hook_request.ts';
import type { Hook } from '../bridge/ports.ts';
import { Unreachable } from '../bridge/ports.ts';
import { within } from '../deadline.ts';

/** Resolves to the addresses of a name; rejects as Deno.resolveDns does. */
export type ResolveDns = (name: string, type: 'A' | 'AAAA') => Promise<string[]>;

/** `fetch` that sends the Host header it is given: how one calls an address in the name of its host. */
export type FetchWithHost = (url: URL, init: RequestInit) => Promise<Response>;

/** A hook that takes longer is down, as far as a queue is concerned. */
const TIMEOUT_MS = 10_000;

const NOT_PERMITTED: ReadonlySet<string> = new Set(['NotCapable', 'PermissionDenied', 'NotSupported']);

/** Without `sign` the calls are not signed. */
export function createEdgeHook(
  resolveDns: ResolveDns | undefined,
  fetchWithHost?: FetchWithHost,
  sign?: SignHook,
): Hook {
  return {
    async post(call) {
      const { url: target, payload, signal } = call;
      const allowed = new Set(call.allowedHosts);
      const refusal = refusalOfUrl(target, allowed);
      if (refusal !== undefined) throw new Unreachable(`the hook's URL is ${refusal}`);
      const url = new URL(target);
      const isAllowed = allowed.has(url.host) || allowed.has(url.hostname);
      const addresses =
        isAllowed || resolveDns === undefined ? [] : await publicAddresses(url.hostname, resolveDns);
      const body = JSON.stringify(payload);
      const headers = headersOf(call, body, sign, Date.now());
      const init: RequestInit = {
        method: 'POST',
        redirect: 'manual',
        headers,
        body,
      };
      const [address] = addresses;
      const isHeld = address !== undefined && url.protocol === 'http:' && fetchWithHost !== undefined;
      const ask = (ending: AbortSignal) =>
        isHeld
          ? fetchWithHost(atAddress(url, address), {
              ...init,
              headers: { ...headers, host: url.host },
              signal: ending,
            })
          : fetch(url, { ...init, signal: ending });
      const response = await within(ask, TIMEOUT_MS, signal).catch((error: unknown) => {
        throw failureOf(error, url.host);
      });
      // The status is all we need.
      await response.body?.cancel();
      return response.status;
    },
  };
}

/**
 * Deno says it in words only: "client error (Connect)" covers DNS, TCP and TLS. A timeout says nothing of where. The words
 * hold the whole address, whose path may hold a secret: they are kept with the host alone.
 */
function failureOf(error: unknown, host: string): unknown {
  if (!(error instanceof TypeError)) return error;
  const { message } = error.cause instanceof Error ? error.cause : error;
  const words = message.replace(/https?:\/\/\S+/g, host);
  return words.includes('client error (Connect)') ? new Unreachable(words) : new Error(words);
}

/** The same URL with an address for its host. */
function atAddress(url: URL, address: string): URL {
  const there = new URL(url);
  there.hostname = address.includes(':') ? `[${address}]` : address;
  return there;
}

/**
 * The addresses of a name, IPv4 first; none if the host is an address already, or if the platform does not let us resolve
 * names. Throws if one of them is private.
 */
async function publicAddresses(hostname: string, resolveDns: ResolveDns): Promise<string[]> {
  // An address needs no resolving, and has been judged with the URL.
  if (hostname.startsWith('[') || /^[\d.]+$/.test(hostname)) return [];
  const answers = await Promise.all([
    addressesOf(hostname, 'A', resolveDns),
    addressesOf(hostname, 'AAAA', resolveDns),
  ]);
  // Where the platform does not let us ask, its own network rules are what is left.
  if (answers.includes(undefined)) return [];
  const addresses = answers.flatMap((some) => some ?? []);
  if (addresses.length === 0) throw new Unreachable(`${hostname} has no address`);
  if (addresses.some(isRefusedAddress))
    throw new Unreachable(`${hostname} is at a private or special address`);
  return addresses;
}

/**
 * Undefined if the platform does not let us ask, empty if the name has no such address. Any other failure is Unreachable:
 * without an address the request was not sent.
 */
async function addressesOf(
  name: string,
  type: 'A' | 'AAAA',
  resolveDns: ResolveDns,
): Promise<string[] | undefined> {
  try {
    return await resolveDns(name, type);
  } catch (error) {
    const kind = error instanceof Error ? error.name : '';
    if (kind === 'NotFound') return [];
    if (NOT_PERMITTED.has(kind)) return undefined;
    throw new Unreachable(`${name} cannot be resolved`, { cause: error });
  }
}
