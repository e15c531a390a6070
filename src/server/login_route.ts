// `GET /v1/login`: where a page sends people who have to sign in.

import { cacheableHeaders, jsonResponse, type Route } from '#core/router.ts';

/** It changes with a restart only. */
const MAX_AGE_SEC = 60;

/** Null where the operator has set none. */
export function loginRoute(loginUrl: URL | undefined): Route {
  const answer = jsonResponse(200, { login_url: loginUrl?.href ?? null }, cacheableHeaders(MAX_AGE_SEC));
  return { method: 'GET', path: '/v1/login', handle: () => answer };
}
