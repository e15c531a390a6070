// What operators do with endpoints and stored events: which function of schema webhook each action is. The admin door and
// `sluice webhooks` both go through here. Every answer about ids is one result per id, never a count.

import type { CallFunction } from '../call_function.ts';
import type { AuditRow } from '../console/audit.ts';
import { HttpError } from '../errors.ts';
import { codeOf, SQLSTATE } from '../failure.ts';
import { withRules } from '../rules.ts';
import { textOf } from '../text.ts';
import type { EndpointSettings, NewEndpoint } from './endpoint_settings.ts';
import type { EventStatus } from './ports.ts';

/** A row of public.webhook_endpoints: names of secrets, never secrets. */
export interface EndpointRow {
  readonly webhook_id: string;
  readonly name: string;
  readonly provider: string;
  /** What stands in the provider column of its events, payments and credits. */
  readonly tenant: string;
  readonly livemode: string;
  readonly accounts: readonly string[];
  readonly mode: string;
  readonly on_outage: string;
  readonly secret_names: readonly string[];
  readonly verify_token_name: string | null;
  readonly api_key_name: string | null;
  readonly public_url: string | null;
  /** How the provider hmac signs here. */
  readonly scheme: Readonly<Record<string, unknown>> | null;
  readonly max_attempts: number;
  readonly backoff_cap_sec: number;
  readonly lease_sec: number;
  readonly max_body_bytes: number;
  /** Null where the general retention counts. */
  readonly keep_payload_days: number | null;
  readonly is_active: boolean;
  readonly created_at: string;
  /** Why one of its secrets cannot be used; only the server that answers knows. */
  readonly secret_fault?: string | null;
}

/** A row of webhook.list_events. */
export interface EventRow {
  readonly id: string;
  readonly webhook_id: string;
  /** Of the endpoint; null where it is unknown. */
  readonly name: string | null;
  /** A tenant: see providerOf. */
  readonly provider: string;
  readonly event_id: string;
  readonly event_type: string;
  readonly status: EventStatus;
  readonly attempts: number;
  readonly takeovers: number;
  readonly error: string | null;
  readonly occurred_at: string | null;
  readonly received_at: string;
  readonly processed_at: string | null;
  readonly last_attempt_at: string | null;
  readonly next_attempt_at: string | null;
  readonly skipped_by: string | null;
  /** We asked the provider for it. */
  readonly backfilled: boolean;
}

/** A delivery of a known id with another body. */
export interface EventAlarm {
  readonly at: string;
  /** In base64. */
  readonly body: string | null;
}

/** All of the row, and what belongs to it. */
export interface EventDetails extends EventRow {
  readonly payload: unknown;
  readonly payload_hash: string | null;
  readonly signature: string | null;
  readonly idempotency_key: string | null;
  readonly lease_until: string | null;
  /** Since when its tries are told to come later, uncounted; null where they are not. */
  readonly waiting_since: string | null;
  /** In base64; null where it was pruned. */
  readonly raw_body: string | null;
  readonly alarms: readonly EventAlarm[];
  /** That has it; null where none has. */
  readonly handler: string | null;
  /** After so many that failed it is a dead letter. */
  readonly max_attempts: number;
}

/** What an event brought about (webhook.event_links). */
export interface EventLinks {
  readonly payments: readonly {
    readonly payment_key: string;
    readonly order_id: string | null;
    readonly user_id: string | null;
    readonly state: string;
  }[];
  /** Rows of the credit ledger. */
  readonly credits: number;
  readonly audit: readonly AuditRow[];
}

/** A row of webhook.replay_events and of webhook.skip_events. */
export interface EventResult {
  readonly id: string;
  /** Null if the event does not exist. */
  readonly event_id: string | null;
  readonly outcome: string;
}

/** What is left out does not filter. */
export interface EventFilter {
  readonly webhook_id?: string;
  readonly event_id?: string;
  readonly provider?: string;
  readonly statuses?: readonly EventStatus[];
  readonly since?: string;
  readonly until?: string;
  /** A type, or a prefix that ends in `*`. */
  readonly type?: string;
  /** A part of the error or of its shape, as an issue has it, in any case. */
  readonly error?: string;
  /** A JSON path of Postgres that finds something other than false and null in the payload. */
  readonly path?: string;
  /** The last id of the page before. */
  readonly after?: string;
  /** The oldest come first where left out. */
  readonly newestFirst?: boolean;
  readonly limit: number;
  /** How many are left out at the beginning; none where left out. */
  readonly offset?: number;
}

export interface EventAction {
  readonly ids: readonly string[];
  readonly actor: string;
  readonly reason: string | null;
  readonly dryRun: boolean;
}

export interface ReplayAction extends EventAction {
  /** For calls to the outside, instead of the event's own key. */
  readonly idempotencyKey: string | null;
}

/** Who, and why, for the audit log. */
export interface Signed {
  readonly actor: string;
  readonly reason: string | null;
}

/** New names of secrets go in front of those of before, which stay good until a rotation with `only`. */
export interface Rotation {
  readonly secretNames: readonly string[];
  readonly only: boolean;
}

export function rotationArgs({ secretNames, only }: Rotation, { actor, reason }: Signed) {
  return { p_secret_names: secretNames, p_only: only, p_actor: actor, p_reason: reason };
}

export interface OperatorStore {
  listEndpoints(): Promise<EndpointRow[]>;
  findEndpoint(name: string): Promise<EndpointRow | undefined>;
  addEndpoint(endpoint: NewEndpoint, by: Signed): Promise<EndpointRow>;
  changeEndpoint(name: string, changes: EndpointSettings, by: Signed): Promise<EndpointRow>;
  rotateEndpoint(name: string, rotation: Rotation, by: Signed): Promise<EndpointRow>;
  listEvents(filter: EventFilter): Promise<EventRow[]>;
  showEvent(id: string): Promise<EventDetails | undefined>;
  eventLinks(id: string): Promise<EventLinks>;
  replay(action: ReplayAction): Promise<EventResult[]>;
  skip(action: EventAction): Promise<EventResult[]>;
  /** How many events lost their payload; fewer than `limit` when nothing is left to do. */
  prune(days: number | null, limit: number, actor: string): Promise<number>;
}

/** `call` takes names of functions in schema webhook. */
export function createOperatorStore(call: CallFunction): OperatorStore {
  const findEndpoint = async (name: string) =>
    (await call<EndpointRow>('find_endpoint', { p_name: name }))[0];
  return {
    listEndpoints: () => call<EndpointRow>('list_endpoints', {}),
    findEndpoint,
    async addEndpoint(endpoint, { actor, reason }) {
      const { name, provider, secret_names, mode = 'queued', tenant = null, ...settings } = endpoint;
      const args = {
        p_name: name,
        p_provider: provider,
        p_secret_names: secret_names,
        p_mode: mode,
        p_settings: settings,
        p_actor: actor,
        p_reason: reason,
        p_tenant: tenant,
      };
      await withRules(call('add_endpoint', args));
      return present(await findEndpoint(name));
    },
    async changeEndpoint(name, changes, { actor, reason }) {
      const args = { p_name: name, p_changes: changes, p_actor: actor, p_reason: reason };
      const [endpoint] = await withRules(call<EndpointRow>('change_endpoint', args));
      return present(endpoint);
    },
    async rotateEndpoint(name, rotation, by) {
      const args = { p_name: name, ...rotationArgs(rotation, by) };
      const [endpoint] = await withRules(call<EndpointRow>('rotate_endpoint', args));
      return present(endpoint);
    },
    listEvents: (filter) =>
      call<EventRow>('list_events', filterArgs(filter)).catch((error: unknown) => refusePath(filter, error)),
    async showEvent(id) {
      const [row] = await call<{ event: EventDetails }>('show_event', { p_id: id });
      if (row === undefined) return undefined;
      const { event, ...more } = row;
      return { ...event, ...more };
    },
    async eventLinks(id) {
      const [row] = await call<{ event_links: EventLinks }>('event_links', { p_id: id });
      return row?.event_links ?? { payments: [], credits: 0, audit: [] };
    },
    replay: (action) =>
      call<EventResult>('replay_events', {
        ...actionArgs(action),
        p_idempotency_key: action.idempotencyKey,
      }),
    skip: (action) => call<EventResult>('skip_events', actionArgs(action)),
    async prune(days, limit, actor) {
      const [row] = await call<{ prune_payloads: number }>('prune_payloads', {
        p_days: days,
        p_limit: limit,
        p_actor: actor,
      });
      return row?.prune_payloads ?? 0;
    },
  };
}

function present(endpoint: EndpointRow | undefined): EndpointRow {
  if (endpoint === undefined) throw new Error('the endpoint was written and is not there');
  return endpoint;
}

export function filterArgs(filter: EventFilter): Record<string, unknown> {
  return {
    p_webhook_id: filter.webhook_id ?? null,
    p_event_id: filter.event_id ?? null,
    p_provider: filter.provider ?? null,
    p_statuses: filter.statuses ?? null,
    p_since: filter.since ?? null,
    p_until: filter.until ?? null,
    p_after: filter.after ?? null,
    p_limit: filter.limit,
    p_newest_first: filter.newestFirst ?? false,
    p_event_type: filter.type ?? null,
    p_error: filter.error ?? null,
    p_path: filter.path ?? null,
    p_offset: filter.offset ?? 0,
  };
}

/** A bad path is the one thing in a filter that only the database can judge. */
function refusePath({ path }: EventFilter, error: unknown): never {
  if (path === undefined || codeOf(error) !== SQLSTATE.invalidInput) throw error;
  throw new HttpError(
    'invalid_input',
    `path is not a JSON path, such as $.data.object.id or $.data.object.amount > 1000: ${textOf(error)}.`,
    error,
  );
}

function actionArgs({ ids, actor, reason, dryRun }: EventAction): Record<string, unknown> {
  return { p_ids: ids, p_actor: actor, p_reason: reason, p_dry_run: dryRun };
}
