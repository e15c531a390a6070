// The operators' door to webhooks: endpoints, and the events that are stored. Behind the runtime's own authentication.

import { offsetOf, PAGE } from '../console/list.ts';
import { HttpError } from '../errors.ts';
import { type Authorize, type OperatorRoute, operatorRoutes, REASON, UUID } from '../operator.ts';
import { checked, readQuery } from '../query.ts';
import { type HttpRequest, type HttpResponse, jsonResponse, readJson } from '../router.ts';
import type { FromSchema, Schema } from '../schema.ts';
import {
  ADD_BODY,
  CHANGE_BODY,
  completeEndpoint,
  completeSettings,
  ROTATE_BODY,
} from './endpoint_settings.ts';
import type { EndpointRow, EventFilter, OperatorStore, Signed } from './operators.ts';
import type { EventStatus } from './ports.ts';
import { providerNamed } from './providers.ts';
import { minSecretChars, type Secrets } from './secrets.ts';

export interface WebhookAdminPorts {
  readonly store: OperatorStore;
  /** As the server that verifies sees them. */
  readonly secrets: Pick<Secrets, 'faultOf'>;
  readonly authorize: Authorize;
}

const MAX_BODY_BYTES = 64 * 1024;
/** One action is one transaction that holds the lock of each event: bounded, so that it stays short. */
export const MAX_EVENT_IDS = 1_000;
const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1_000;

/** A day (UTC), or a moment with its zone. */
export const MOMENT = {
  type: 'string',
  pattern:
    '^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2}))?$',
} as const satisfies Schema;

const ACTION = {
  ids: { type: 'array', items: UUID, minItems: 1, maxItems: MAX_EVENT_IDS },
  reason: REASON,
  dry_run: { type: 'boolean', description: 'Says what would be done and changes nothing.' },
} as const;

const STATUS = {
  type: 'string',
  pattern: '^(pending|processing|success|skipped|failed|dead_letter)$',
} as const satisfies Schema;

/** What chooses events, in a query and in a body. */
const CHOICE = {
  webhook_id: UUID,
  event_id: { type: 'string', maxLength: 500 },
  provider: { type: 'string', maxLength: 127 },
  status: STATUS,
  since: MOMENT,
  until: MOMENT,
  type: { type: 'string', minLength: 1, maxLength: 200, description: 'a type, or a prefix that ends in *' },
  error: {
    type: 'string',
    minLength: 1,
    maxLength: 200,
    description: 'a part of the error, or of its shape as an issue has it, in any case',
  },
  path: {
    type: 'string',
    minLength: 1,
    maxLength: 1000,
    description: 'a JSON path of Postgres that finds something other than false and null in the payload',
  },
} as const;

const FILTER = {
  type: 'object',
  properties: CHOICE,
  additionalProperties: false,
  description:
    'Instead of ids: the oldest events that it finds, failed and dead_letter where it names no status, up to 1000 at a time.',
} as const satisfies Schema;

export const SKIP_BODY = {
  type: 'object',
  properties: { ...ACTION, filter: FILTER },
  additionalProperties: false,
} as const satisfies Schema;

export const REPLAY_BODY = {
  ...SKIP_BODY,
  properties: { ...SKIP_BODY.properties, idempotency_key: { type: 'string', minLength: 1, maxLength: 200 } },
} as const satisfies Schema;

export const EVENTS_QUERY = {
  type: 'object',
  properties: {
    ...CHOICE,
    after: UUID,
    page: PAGE,
    limit: { type: 'integer', minimum: 1, maximum: MAX_LIMIT },
  },
  additionalProperties: false,
} as const satisfies Schema;

interface NamedSecrets {
  readonly secret_names?: readonly string[] | undefined;
  readonly verify_token_name?: string | null | undefined;
  readonly api_key_name?: string | null | undefined;
}

/** The names of all secrets that an endpoint, or a change of one, gives. */
export function namedSecrets({ secret_names = [], verify_token_name, api_key_name }: NamedSecrets): string[] {
  return [...secret_names, verify_token_name, api_key_name].filter((name) => typeof name === 'string');
}

export class WebhookAdminRoutes {
  readonly #ports: WebhookAdminPorts;

  constructor(ports: WebhookAdminPorts) {
    this.#ports = ports;
  }

  /** The order matters: "replay" and "skip" are no ids. */
  routes(prefix: string): OperatorRoute[] {
    return operatorRoutes(prefix, MAX_BODY_BYTES, [
      ['GET', '/endpoints', (request) => this.#listEndpoints(request)],
      ['POST', '/endpoints', (request) => this.#addEndpoint(request)],
      ['POST', '/endpoints/change', (request) => this.#changeEndpoint(request)],
      ['POST', '/endpoints/rotate', (request) => this.#rotateEndpoint(request)],
      ['GET', '/events', (request) => this.#listEvents(request)],
      ['POST', '/events/replay', (request) => this.#replay(request)],
      ['POST', '/events/skip', (request) => this.#skip(request)],
      ['GET', '/events/:id', (request, id) => this.#showEvent(request, id)],
    ]);
  }

  async #listEndpoints(request: HttpRequest): Promise<HttpResponse> {
    await this.#ports.authorize(request);
    const endpoints = await this.#ports.store.listEndpoints();
    return jsonResponse(200, { endpoints: await Promise.all(endpoints.map((one) => this.#withFault(one))) });
  }

  async #known(name: string): Promise<EndpointRow> {
    const known = await this.#ports.store.findEndpoint(name);
    if (known === undefined) throw new HttpError('unknown_endpoint');
    return known;
  }

  async #addEndpoint(request: HttpRequest): Promise<HttpResponse> {
    const actor = await this.#ports.authorize(request);
    const { reason = null, ...body } = readJson(request, ADD_BODY);
    const endpoint = completeEndpoint(body);
    await this.#requireSecrets(endpoint.provider, endpoint);
    const added = await this.#ports.store.addEndpoint(endpoint, { actor, reason });
    return jsonResponse(201, await this.#withFault(added));
  }

  async #changeEndpoint(request: HttpRequest): Promise<HttpResponse> {
    const actor = await this.#ports.authorize(request);
    const { name, changes, reason = null } = readJson(request, CHANGE_BODY);
    const { provider } = await this.#known(name);
    await this.#requireSecrets(provider, changes);
    const by: Signed = { actor, reason };
    const changed = await this.#ports.store.changeEndpoint(name, completeSettings(changes), by);
    return jsonResponse(200, await this.#withFault(changed));
  }

  async #rotateEndpoint(request: HttpRequest): Promise<HttpResponse> {
    const actor = await this.#ports.authorize(request);
    const { name, secret_names, only = false, reason = null } = readJson(request, ROTATE_BODY);
    const { provider } = await this.#known(name);
    await this.#requireSecrets(provider, { secret_names });
    const rotation = { secretNames: secret_names, only };
    const rotated = await this.#ports.store.rotateEndpoint(name, rotation, { actor, reason });
    return jsonResponse(200, await this.#withFault(rotated));
  }

  /** Secrets that are named now must exist; those named before may be missing, and the list says so. */
  async #requireSecrets(provider: string, named: NamedSecrets): Promise<void> {
    const fault = await this.#faultOf(provider, named);
    if (fault !== undefined) throw new HttpError('invalid_input', fault);
  }

  async #withFault(endpoint: EndpointRow): Promise<EndpointRow> {
    return { ...endpoint, secret_fault: (await this.#faultOf(endpoint.provider, endpoint)) ?? null };
  }

  #faultOf(provider: string, named: NamedSecrets): Promise<string | undefined> {
    return this.#ports.secrets.faultOf(namedSecrets(named), minSecretChars(providerNamed(provider)));
  }

  async #listEvents(request: HttpRequest): Promise<HttpResponse> {
    await this.#ports.authorize(request);
    // Operators look for what has just come or failed.
    const filter = { ...filterOf(readQuery(request.query, EVENTS_QUERY)), newestFirst: true };
    return jsonResponse(200, { events: await this.#ports.store.listEvents(filter) });
  }

  async #showEvent(request: HttpRequest, id: string): Promise<HttpResponse> {
    await this.#ports.authorize(request);
    const event = await this.#ports.store.showEvent(checked(UUID, id, 'id'));
    if (event === undefined) throw new HttpError('not_found', 'No event has this id.');
    return jsonResponse(200, { ...event, links: await this.#ports.store.eventLinks(event.id) });
  }

  async #replay(request: HttpRequest): Promise<HttpResponse> {
    const actor = await this.#ports.authorize(request);
    const {
      reason = null,
      dry_run = false,
      idempotency_key = null,
      ...chosen
    } = readJson(request, REPLAY_BODY);
    const ids = await this.#chosen(chosen);
    // A system that a handler calls with this key would take two events for one.
    if (idempotency_key !== null && new Set(ids.map((id) => id.toLowerCase())).size > 1)
      throw new HttpError('invalid_input', 'An idempotency_key is for one event.');
    const action = { ids, actor, reason, dryRun: dry_run, idempotencyKey: idempotency_key };
    return jsonResponse(200, { results: await this.#ports.store.replay(action) });
  }

  async #skip(request: HttpRequest): Promise<HttpResponse> {
    const actor = await this.#ports.authorize(request);
    const { reason = null, dry_run = false, ...chosen } = readJson(request, SKIP_BODY);
    const ids = await this.#chosen(chosen);
    return jsonResponse(200, {
      results: await this.#ports.store.skip({ ids, actor, reason, dryRun: dry_run }),
    });
  }

  /** The ids as given, or those of the oldest events that the filter finds. */
  async #chosen({ ids, filter }: Pick<FromSchema<typeof SKIP_BODY>, 'ids' | 'filter'>): Promise<string[]> {
    const isFiltered = filter !== undefined && Object.keys(filter).length > 0;
    if ((ids === undefined) !== isFiltered)
      throw new HttpError('invalid_input', 'Give either ids or a filter that chooses something.');
    if (ids !== undefined) return [...ids];
    const found = await this.#ports.store.listEvents({
      statuses: ['failed', 'dead_letter'],
      ...filterOf({ ...filter, limit: MAX_EVENT_IDS }),
    });
    return found.map(({ id }) => id);
  }
}

export function filterOf(query: FromSchema<typeof EVENTS_QUERY>): EventFilter {
  const { status, since, until, page, limit = DEFAULT_LIMIT, ...rest } = query;
  return {
    ...rest,
    limit,
    offset: offsetOf({ page, after: query.after, limit }),
    ...(status !== undefined && { statuses: [status as EventStatus] }),
    ...(since !== undefined && { since: momentOf('since', since) }),
    ...(until !== undefined && { until: momentOf('until', until) }),
  };
}

/** The moment in one spelling; the pattern lets a 30th of February through, and this does not. */
export function momentOf(name: string, text: string): string {
  const moment = new Date(text);
  const isReal =
    !Number.isNaN(moment.getTime()) &&
    new Date(`${text.slice(0, 10)}Z`).toISOString().startsWith(text.slice(0, 10));
  if (!isReal) throw new HttpError('invalid_input', `${name} is not a date that exists.`);
  return moment.toISOString();
}
