// The published description of the HTTP interface: OpenAPI 3.1, made of the routes that answer, the schemas that check and the
// errors that are sent.

import { ERROR_KINDS, type ErrorCode } from '../errors.ts';
import { ADMIN_ROLES } from '../roles.ts';
import type { Route } from '../router.ts';
import type { ObjectSchema, Schema } from '../schema.ts';
import { OPERATIONS, type Operation } from './operations.ts';

/** JSON Schema of an answer. Beside what bodies may be: a reference, and objects whose fields others decide. */
export type AnswerSchema =
  | Schema
  | { readonly $ref: string }
  | { readonly type: 'object'; readonly description: string }
  | { readonly type: 'number' | readonly ['number', 'null'] }
  | { readonly type: readonly ['object', 'null']; readonly description: string }
  | { readonly type: 'array' | readonly ['array', 'null']; readonly items: AnswerSchema }
  | {
      readonly type: 'object';
      readonly properties: { readonly [name: string]: AnswerSchema };
      readonly required: readonly string[];
    };

export interface Answer {
  readonly description: string;
  /** Left out where the answer has no body. */
  readonly schema?: AnswerSchema;
  /** application/json where left out. */
  readonly type?: string;
}

export interface RouteDescription {
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** open: any caller. token: any caller, and a token may say who it is. operator: operators only. */
  readonly auth: 'open' | 'token' | 'operator';
  /** What the path's parameter is. */
  readonly parameter?: string;
  readonly headers?: { readonly [name: string]: { readonly description: string; readonly schema: Schema } };
  readonly query?: ObjectSchema;
  readonly body?: Schema;
  readonly answers: { readonly [status: number]: Answer };
  /** Beside those that every route of its kind has. */
  readonly errors?: readonly ErrorCode[];
}

/** By "METHOD /path", as in the route. */
export type Descriptions = Readonly<Record<string, RouteDescription>>;

export interface DocumentOptions {
  readonly routes: readonly Pick<Route, 'method' | 'path'>[];
  readonly descriptions: Descriptions;
  readonly schemas: { readonly [name: string]: AnswerSchema };
  readonly version: string;
}

type Json = Record<string, unknown>;

const SECURITY: Readonly<Record<RouteDescription['auth'], readonly Json[]>> = {
  open: [],
  token: [{}, { token: [] }],
  operator: [{ operatorKey: [] }, { session: [] }],
};
const ALWAYS: readonly ErrorCode[] = [
  'internal',
  'database_unavailable',
  'busy',
  'shutting_down',
  'too_many_requests',
  // Where no body is expected one can be sent all the same.
  'too_large',
];
const WITH_BODY: readonly ErrorCode[] = [
  'invalid_json',
  'invalid_input',
  'unsupported_media_type',
  'timeout',
];
const OF_AUTH: Readonly<Record<RouteDescription['auth'], readonly ErrorCode[]>> = {
  open: [],
  token: ['auth_required', 'role_refused', 'auth_unavailable', 'too_many_attempts'],
  operator: ['auth_required', 'role_refused', 'too_many_attempts'],
};

export const UNDESCRIBED: RouteDescription = {
  tag: 'undescribed',
  summary: 'Not described yet',
  auth: 'open',
  answers: { 200: { description: 'Done.' } },
};

/** Contains every route: one without a description says that it has none. */
export function createDocument({ routes, descriptions, schemas, version }: DocumentOptions): Json {
  const paths: Record<string, Json> = {};
  for (const { method, path } of routes) {
    const description = descriptions[`${method} ${path}`] ?? UNDESCRIBED;
    const place = path.replace(/:(\w+)/, '{$1}');
    paths[place] = { ...paths[place], [method.toLowerCase()]: operation(method, path, description) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sluice',
      version,
      summary: 'Claims of scarce slots, each of which ends exactly once.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    paths,
    components: {
      schemas: { ...schemas, Error: ERROR },
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
        operatorKey: { type: 'http', scheme: 'bearer', description: "An operator's key." },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: 'sluice_session',
          description:
            'From POST /admin/session; over https its name is __Host-sluice_session. Every method but GET then needs the header x-sluice-csrf: 1.',
        },
      },
    },
  };
}

const ERROR: AnswerSchema = {
  type: 'object',
  properties: {
    error: {
      type: 'object',
      properties: {
        code: { type: 'string', description: 'What to act on.' },
        message: { type: 'string' },
        hint: { type: 'string', description: 'What to do about it.' },
        request_id: {
          type: 'string',
          description: 'As in x-request-id. The log names it where it tells of this failure.',
        },
      },
      required: ['code', 'message', 'hint', 'request_id'],
    },
  },
  required: ['error'],
};

function operation(method: string, path: string, it: RouteDescription): Json {
  const { id, ...example }: Partial<Operation> = OPERATIONS[`${method} ${path}`] ?? {};
  return {
    operationId: id ?? operationId(method, path),
    tags: [it.tag],
    summary: it.summary,
    ...descriptionOf(method, path, it),
    security: SECURITY[it.auth],
    parameters: parametersOf(path, it, example),
    ...(it.body !== undefined && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: it.body, ...exampleOf(example.body) } },
      },
    }),
    responses: { ...answersOf(it), ...refusalsOf(method, it) },
  };
}

function descriptionOf(method: string, path: string, it: RouteDescription): Json {
  const least = it.auth === 'operator' ? (ADMIN_ROLES[`${method} ${path}`] ?? 'viewer') : 'anyone';
  const role = least === 'anyone' ? undefined : `Needs the role ${least}.`;
  const description = [it.description, role].filter((text) => text !== undefined).join(' ');
  return description === '' ? {} : { description };
}

function exampleOf(example: unknown): Json {
  return example === undefined ? {} : { example };
}

/** Of a route that has no name yet: "POST /v1/pools/:pool/claims" → "post_v1_pools_pool_claims". */
function operationId(method: string, path: string): string {
  return `${method}${path}`.toLowerCase().replace(/[^a-z0-9]+/g, '_');
}

function parametersOf(path: string, it: RouteDescription, example: Omit<Operation, 'id'>): Json[] {
  const name = /:(\w+)/.exec(path)?.[1];
  const inPath =
    name === undefined
      ? []
      : [
          {
            name,
            in: 'path',
            required: true,
            description: it.parameter,
            schema: { type: 'string' },
            ...exampleOf(example.path),
          },
        ];
  const inHeader = Object.entries(it.headers ?? {}).map(([header, rest]) => ({
    name: header,
    in: 'header',
    required: false,
    ...rest,
    ...exampleOf(example.headers?.[header]),
  }));
  const inQuery = Object.entries(it.query?.properties ?? {}).map(([field, schema]) => ({
    name: field,
    in: 'query',
    required: it.query?.required?.includes(field) ?? false,
    schema,
    ...exampleOf(example.query?.[field]),
  }));
  return [...inPath, ...inHeader, ...inQuery];
}

function answersOf({ answers }: RouteDescription): Json {
  return Object.fromEntries(
    Object.entries(answers).map(([status, { description, schema, type = 'application/json' }]) => [
      status,
      { description, ...(schema !== undefined && { content: { [type]: { schema } } }) },
    ]),
  );
}

/** One entry a status, with all the codes it may carry. */
function refusalsOf(method: string, it: RouteDescription): Json {
  const isOperatorsChange = it.auth === 'operator' && method !== 'GET';
  const codes = new Set<ErrorCode>([
    ...(it.errors ?? []),
    ...(it.body === undefined ? [] : WITH_BODY),
    ...(it.query === undefined ? [] : (['invalid_input'] as const)),
    ...OF_AUTH[it.auth],
    ...(isOperatorsChange ? (['csrf_refused'] as const) : []),
    ...ALWAYS,
  ]);
  const kinds = [...codes].map((code) => ERROR_KINDS[code]).sort((a, b) => a.http - b.http);
  const statuses = [...new Set(kinds.map(({ http }) => http))];
  return Object.fromEntries(
    statuses.map((status) => {
      const here = kinds.filter(({ http }) => http === status);
      const refusal = {
        description: here.map(({ code, message }) => `\`${code}\`: ${message}`).join(' '),
        ...(here.some(({ retryable }) => retryable) && {
          headers: {
            'Retry-After': {
              description: 'Seconds. Where it is sent, a retry can help.',
              schema: { type: 'integer' },
            },
          },
        }),
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      };
      return [String(status), refusal];
    }),
  );
}
