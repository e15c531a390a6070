// What a person gets who follows a link that leads nowhere; programs get the refusal in JSON.

import type { DoorRequest, DoorResponse, Match } from '#core/door.ts';
import { SECURITY } from './assets.ts';

const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>Nothing here</title>
  </head>
  <body>
    <h1>There is nothing at this address.</h1>
    <p>Was it copied whole? The <a href="/">console</a> is for operators.</p>
  </body>
</html>
`;

/** Undefined where no browser asks. A slash too much at the end leads to the page without it. */
export function notFoundPage(
  { method, path, headers }: DoorRequest,
  find: (method: string, path: string) => Match,
): DoorResponse | undefined {
  const isBrowser = String(headers.accept ?? '').includes('text/html');
  if (!isBrowser || (method !== 'GET' && method !== 'HEAD')) return undefined;
  const without = path.replace(/\/+$/, '');
  // Only to a path that is ours: whatever else begins with slashes could lead to another host.
  if (without !== path && without !== '' && find('GET', without).refusal === undefined)
    return {
      status: 308,
      headers: { ...SECURITY, location: without, 'cache-control': 'no-cache' },
      body: '',
    };
  return {
    status: 404,
    headers: { ...SECURITY, 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' },
    body: PAGE,
  };
}
