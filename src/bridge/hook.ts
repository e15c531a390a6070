// Calls to the hooks of pools, and to the owner's address for alerts. The address is checked where the connection is made, so a name that changes its answer
// between check and call gains nothing; redirects are not followed.

import { lookup as resolve } from 'node:dns';
import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type RequestOptions,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import { isRefusedAddress, refusalOfUrl } from '#core/bridge/address.ts';
import { headersOf, type SignHook } from '#core/bridge/hook_request.ts';
import type { Hook } from '#core/bridge/ports.ts';
import { Unreachable } from '#core/bridge/ports.ts';
import { limited } from '#core/deadline.ts';
import { textOf } from '#core/text.ts';

/** A hook that takes longer is down, as far as a queue is concerned. */
const TIMEOUT_MS = 10_000;
/** As the agents that Node makes itself: an idle connection stays open for so long. */
const IDLE_MS = 5_000;

const agents = () => {
  const options = { keepAlive: true, timeout: IDLE_MS };
  return { http: new HttpAgent(options), https: new HttpsAgent(options) };
};
/** Each has connections of its own: one that was made to an allowed host may lead to a private address, and outlives the permission. */
const [GUARDED, ALLOWED] = [agents(), agents()];

/** Without `sign` the calls are not signed. */
export function createHook(sign?: SignHook): Hook {
  return {
    post(call) {
      const { url, payload, allowedHosts, signal } = call;
      const body = JSON.stringify(payload);
      return postGuarded({
        what: "the hook's URL",
        url,
        body,
        headers: headersOf(call, body, sign, Date.now()),
        allowedHosts,
        signal,
      });
    },
  };
}

interface Post {
  /** How an error calls the address. */
  readonly what: string;
  readonly url: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Hosts that may have a private address. */
  readonly allowedHosts: readonly string[];
  readonly signal: AbortSignal;
}

/** The status of the answer. Rejects as Hook says, also where the address is not one of the public internet and its host not allowed. */
export function postGuarded({
  what,
  url: target,
  body,
  headers,
  allowedHosts,
  signal,
}: Post): Promise<number> {
  const allowed = new Set(allowedHosts);
  const refusal = refusalOfUrl(target, allowed);
  if (refusal !== undefined) return Promise.reject(new Unreachable(`${what} is ${refusal}`));
  const url = new URL(target);
  const isAllowed = allowed.has(url.host) || allowed.has(url.hostname);
  const { http, https } = isAllowed ? ALLOWED : GUARDED;
  const options: RequestOptions = {
    method: 'POST',
    agent: url.protocol === 'https:' ? https : http,
    headers: { ...headers, 'content-length': Buffer.byteLength(body) },
    ...(!isAllowed && { lookup: publicAddressOnly }),
  };
  // `send` ends by its signal, and says whether the target can have seen the request.
  return limited((ending) => send(url, body, { ...options, signal: ending }), TIMEOUT_MS, signal);
}

function send(url: URL, body: string, options: RequestOptions): Promise<number> {
  return new Promise((answer, reject) => {
    const isSecure = url.protocol === 'https:';
    const request: ClientRequest = (isSecure ? httpsRequest : httpRequest)(url, options);
    let isConnected = false;
    request.on('socket', (socket) => {
      // A connection that is used again does not say so again.
      isConnected = !socket.connecting;
      if (isConnected) return;
      socket.once(isSecure ? 'secureConnect' : 'connect', () => {
        isConnected = true;
      });
    });
    request.on('response', (response) => {
      // The status is all we need; the rest is read and dropped so that the connection can be used again.
      response.on('error', () => undefined);
      response.resume();
      answer(response.statusCode ?? 0);
    });
    request.on('error', (error) =>
      reject(isConnected ? error : new Unreachable(textOf(error) || 'no connection', { cause: error })),
    );
    request.end(body);
  });
}

const publicAddressOnly: LookupFunction = (hostname, options, callback) => {
  resolve(hostname, { ...options, all: true }, (error, addresses) => {
    if (error) {
      callback(error, []);
      return;
    }
    if (addresses.some(({ address }) => isRefusedAddress(address))) {
      callback(new Error(`${hostname} is at a private or special address`), []);
      return;
    }
    const [first] = addresses;
    if (options.all) callback(null, addresses);
    else callback(null, first?.address ?? '', first?.family);
  });
};
