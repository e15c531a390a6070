// `GET /openapi.json`: put together once, from the routes that this server answers.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BUYER_DESCRIPTIONS, BUYER_SCHEMAS } from '#core/openapi/buyers.ts';
import { createDocument, type Descriptions } from '#core/openapi/document.ts';
import { ISSUE_DESCRIPTIONS, ISSUE_SCHEMAS } from '#core/openapi/issues.ts';
import { OPERATOR_DESCRIPTIONS, OPERATOR_SCHEMAS } from '#core/openapi/operators.ts';
import { ORDER_DESCRIPTIONS, ORDER_SCHEMAS } from '#core/openapi/orders.ts';
import { PROVIDER_DESCRIPTIONS, PROVIDER_SCHEMAS } from '#core/openapi/providers.ts';
import { SAMPLE_SCHEMAS } from '#core/openapi/samples.ts';
import { SEARCH_DESCRIPTIONS, SEARCH_SCHEMAS } from '#core/openapi/search.ts';
import { shape, TEXT } from '#core/openapi/shapes.ts';
import { ROLES } from '#core/roles.ts';
import { cacheableHeaders, jsonResponse, type Route } from '#core/router.ts';
import { PROJECT_ROOT } from '../project_root.ts';
import { SESSION_BODY } from './operator_auth.ts';

/** It changes with the version only; a new server must be seen soon all the same. */
const MAX_AGE_SEC = 60;

const SESSION_DESCRIPTIONS: Descriptions = {
  'POST /admin/session': {
    tag: 'admin: session',
    summary: "Exchange an operator's key for a cookie",
    auth: 'open',
    body: SESSION_BODY,
    answers: { 204: { description: 'Signed in for 12 hours.' } },
    errors: ['auth_required', 'too_many_attempts'],
  },
  'GET /admin/session': {
    tag: 'admin: session',
    summary: 'Who am I?',
    auth: 'operator',
    answers: {
      200: {
        description: 'The operator.',
        schema: shape({ name: TEXT, role: { ...TEXT, description: `${ROLES.join(', ')}.` } }),
      },
    },
  },
  'DELETE /admin/session': {
    tag: 'admin: session',
    summary: 'Sign out',
    auth: 'operator',
    answers: {
      204: { description: 'The session has ended: the cookie is good for nothing, and its streams end.' },
    },
  },
};

export const DESCRIPTIONS: Descriptions = {
  ...BUYER_DESCRIPTIONS,
  ...OPERATOR_DESCRIPTIONS,
  ...ORDER_DESCRIPTIONS,
  ...SEARCH_DESCRIPTIONS,
  ...ISSUE_DESCRIPTIONS,
  ...PROVIDER_DESCRIPTIONS,
  ...SESSION_DESCRIPTIONS,
};

/** Describes these routes and itself. Pages are for people and are not passed in. */
export function openApiRoute(routes: readonly Route[]): Route {
  const self = { method: 'GET', path: '/openapi.json' };
  const document = createDocument({
    routes: [...routes, self],
    descriptions: DESCRIPTIONS,
    schemas: {
      ...BUYER_SCHEMAS,
      ...OPERATOR_SCHEMAS,
      ...SAMPLE_SCHEMAS,
      ...ORDER_SCHEMAS,
      ...SEARCH_SCHEMAS,
      ...ISSUE_SCHEMAS,
      ...PROVIDER_SCHEMAS,
    },
    version: packageVersion(),
  });
  const answer = jsonResponse(200, document, cacheableHeaders(MAX_AGE_SEC));
  return { ...self, handle: () => answer };
}

function packageVersion(): string {
  return JSON.parse(readFileSync(join(PROJECT_ROOT, 'package.json'), 'utf8')).version;
}
