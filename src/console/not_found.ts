// What a person gets who follows a link that leads nowhere; programs get the refusal in JSON.

import type { Log } from '#core/ports.ts';
import { type HttpRequest, type HttpResponse, type Route, Router } from '#core/router.ts';
import { SECURITY } from './assets.ts';
import { htmlOf } from './html.ts';

const PAGE = htmlOf({
  title: 'Nothing here',
  body: [
    '<h1>There is nothing at this address.</h1>',
    '<p>Was it copied whole? The <a href="/">console</a> is for operators.</p>',
  ],
});

/**
 * How to answer a browser that follows a link to nowhere; undefined for every other client. A slash too much at the end of a
 * page's address redirects to that page.
 */
export function notFoundPage(
  pages: readonly Route[],
  log: Log,
): (request: HttpRequest) => HttpResponse | undefined {
  const router = new Router(pages, log);
  return ({ method, path, headers }) => {
    const isBrowser = String(headers.accept ?? '').includes('text/html');
    if (!isBrowser || (method !== 'GET' && method !== 'HEAD')) return undefined;
    const without = withoutSlashes(path);
    // Only to a page that is ours: any other path that begins with slashes could lead to another host.
    if (without !== path && without !== '' && router.find('GET', without).refusal === undefined)
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
  };
}

/** Without those at its end. A regular expression would try each slash of a long row anew: 16,000 of them took a third of a second. */
function withoutSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end--;
  return path.slice(0, end);
}
