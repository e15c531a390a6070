// Runs on Deno: the adapter of the Edge Functions against the table, and what really goes over the wire. Prints JSON.

import { createEdgeHook } from '../../db1/supabase/functions/_shared/edge/hook.ts';
import { PRIVATE_BY_DNS, REFUSED } from './ssrf_table.ts';

/** What of Deno this file uses; the project's types are Node's. */
type Runtime = {
  createHttpClient(options: { allowHost: boolean }): { close(): void };
  serve(
    options: { port: number; hostname: string; onListen(): void },
    handle: (request: Request) => Response,
  ): { addr: { port: number }; shutdown(): Promise<void> };
};
const { Deno } = globalThis as unknown as { Deno: Runtime };

const seen: string[] = [];
const server = Deno.serve({ port: 0, hostname: '127.0.0.1', onListen: () => undefined }, (request) => {
  const { pathname } = new URL(request.url);
  seen.push(`${request.headers.get('host')} ${pathname}`);
  if (pathname !== '/redirect') return new Response(null, { status: 201 });
  return new Response(null, {
    status: 307,
    headers: { location: `http://127.0.0.1:${server.addr.port}/landed` },
  });
});
const { port } = server.addr;
const client = Deno.createHttpClient({ allowHost: true });
const held: string[] = [];
const fetchWithHost = (url: URL, init: RequestInit): Promise<Response> => {
  held.push(url.host);
  // The test asks no host on the internet: the server here stands for the public address.
  const here = new URL(url);
  here.host = `127.0.0.1:${port}`;
  return fetch(here, { ...init, client } as RequestInit);
};

type Resolve = (name: string, type: 'A' | 'AAAA') => Promise<string[]>;
const answers =
  (addresses: readonly string[]): Resolve =>
  async (_name, type) =>
    addresses.filter((address) => address.includes(':') === (type === 'AAAA'));

const callTo = (url: string, allowedHosts: string[] = []) => ({
  url,
  payload: {} as never,
  id: 'commit_k',
  idempotencyKey: 'k',
  claimId: 'c',
  allowedHosts,
  signal: new AbortController().signal,
});

async function post(url: string, resolve: Resolve, allowedHosts: string[] = []): Promise<number | string> {
  const hook = createEdgeHook(resolve, fetchWithHost);
  return hook.post(callTo(url, allowedHosts)).catch((error: Error) => error.name);
}

const refused: Record<string, number | string> = {};
for (const url of Object.values(REFUSED).flat()) refused[url] = await post(url, answers(['93.184.215.14']));
const byDns: Record<string, number | string> = {};
for (const [name, addresses] of Object.entries(PRIVATE_BY_DNS))
  byDns[name] = await post(`http://${name}:${port}/`, answers(addresses));
const before = { seen: [...seen], held: [...held] };

/** Answers the first lookup with a public address, every later one with a private address. */
let asked = 0;
const rebinding: Resolve = async (_name, type) => {
  if (type === 'AAAA') return [];
  asked += 1;
  return [asked === 1 ? '93.184.215.14' : '127.0.0.1'];
};
const rebound = await post('http://rebind.example.com:8080/x', rebinding);
const reboundTo = held.at(-1);
const reboundSeen = seen.at(-1);
/** Without a way to hold the address, `fetch` would ask for the name again: here it may not, and says so. */
const unheld = await createEdgeHook(answers(['93.184.215.14']))
  .post(callTo('http://rebind.example.com:8080/x'))
  .catch((error: Error) => error.message);
const redirect = await post(`http://127.0.0.1:${port}/redirect`, answers([]), [`127.0.0.1:${port}`]);
const allowed = await post(`http://127.0.0.1:${port}/allowed`, answers([]), ['127.0.0.1']);

client.close();
await server.shutdown();
console.log(
  JSON.stringify({
    refused,
    byDns,
    before,
    rebound,
    reboundTo,
    reboundSeen,
    unheld,
    asked,
    redirect,
    allowed,
    seen,
  }),
);
