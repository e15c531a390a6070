// The lists of the console as one table: what each can be filtered by, how its rows are read page by page, and how many there are.
// Totals and exports are made of it.

import type { CallFunction } from '../call_function.ts';
import { AUDIT_QUERY, auditFilters } from '../console/audit.ts';
import { CALL_QUERY } from '../console/calls.ts';
import { CLAIM_QUERY } from '../console/claims.ts';
import { ORDER_QUERY } from '../console/orders.ts';
import { CREDIT_QUERY, PAYMENT_QUERY } from '../console/payments.ts';
import { POOL_QUERY } from '../console/pools.ts';
import { REFUND_QUERY } from '../console/refunds.ts';
import { TICKET_QUERY } from '../console/tickets.ts';
import { DEAD_LETTER_QUERY } from '../dead_letters.ts';
import { HttpError } from '../errors.ts';
import type { ObjectSchema, Schema } from '../schema.ts';
import { EVENTS_QUERY, filterOf } from '../webhook/admin.ts';
import { filterArgs } from '../webhook/operators.ts';

export type Row = Readonly<Record<string, unknown>>;
type Args = Record<string, unknown>;
type Filters = Readonly<Record<string, unknown>>;

/** How many rows match. at_least: they were counted so far and no further. about: an estimate. */
export interface Total {
  readonly total: number;
  readonly how: 'exact' | 'at_least' | 'about';
}

export interface ListPorts {
  /** Functions of schema public: of all cells as one, and of DB2. */
  readonly db1: CallFunction;
  readonly db2: CallFunction;
  /** Of schema webhook and of schema calls of DB2. */
  readonly webhook: CallFunction;
  readonly calls: CallFunction;
  /** The names of the cells, where there are several. */
  readonly cells: readonly string[];
}

export interface ListSource {
  /** The filters, as the list's own route takes them. */
  readonly query: ObjectSchema;
  /** In the order of the file. */
  readonly columns: readonly string[];
  /** Rows from `after` on. */
  page(filters: Filters, after: unknown, limit: number): Promise<Row[]>;
  keyOf(last: Row): unknown;
  total(filters: Filters): Promise<Total>;
}

/** What chooses a page, and not rows. */
const OF_THE_PAGE: ReadonlySet<string> = new Set(['after', 'page', 'limit']);

/** A list whose functions take each filter x as p_x. */
function plain(
  query: ObjectSchema,
  [read, list, after]: readonly [CallFunction, string, string],
  [count, total]: readonly [CallFunction, string],
  key: string,
  columns: readonly string[],
): ListSource {
  const args = (filters: Filters): Args => {
    const names = Object.keys(query.properties).filter((name) => !OF_THE_PAGE.has(name));
    return Object.fromEntries(names.map((name) => [`p_${name}`, filters[name] ?? null]));
  };
  return {
    query,
    columns,
    page: (filters, last, p_limit) => read<Row>(list, { ...args(filters), [after]: last, p_limit }),
    keyOf: (row) => row[key],
    total: async (filters) => only(await count<Total>(total, args(filters))),
  };
}

const only = ([row]: readonly Total[]): Total => {
  if (row === undefined) throw new Error('a total is one row');
  return { total: Number(row.total), how: row.how };
};

const words = (text: string): readonly string[] => text.split(' ');

/** By the name that the address has. */
export function listSources(ports: ListPorts): Readonly<Record<string, ListSource>> {
  const { db1, db2, calls } = ports;
  return {
    claims: plain(
      CLAIM_QUERY,
      [db1, 'claim_search', 'p_after'],
      [db1, 'claim_total'],
      'claim_id',
      words(
        'claim_id state pool_id user_id verified resource_id label request_id claimed_at hold_until ended_at end_reason ending cell',
      ),
    ),
    pools: pools(ports),
    orders: plain(
      ORDER_QUERY,
      [db1, 'order_list', 'p_after'],
      [db1, 'order_total'],
      'order_id',
      words(
        'order_id status pool_id user_id verified seats unit_price amount currency ordered_at hold_until payment_key cell',
      ),
    ),
    tickets: plain(
      TICKET_QUERY,
      [db2, 'ticket_list', 'p_after'],
      [db2, 'ticket_total'],
      'claim_id',
      words(
        'claim_id state pool_id user_id verified resource_id order_id confirmed_at used_at used_by voided_at cause',
      ),
    ),
    payments: plain(
      PAYMENT_QUERY,
      [db2, 'payment_list', 'p_after'],
      [db2, 'payment_total'],
      'payment_key',
      words(
        'payment_key state user_id amount captured refunded disputed currency order_id occurred_at provider object_id',
      ),
    ),
    credits: plain(
      CREDIT_QUERY,
      [db2, 'credit_list', 'p_after'],
      [db2, 'credit_total'],
      'id',
      words('id created_at user_id amount currency kind provider object_id event_id business_key'),
    ),
    calls: plain(
      CALL_QUERY,
      [calls, 'list_calls', 'p_before'],
      [db2, 'call_total'],
      'id',
      words('id site_id event_id kind occurred_at received_at is_signed'),
    ),
    refunds: plain(
      REFUND_QUERY,
      [db2, 'list_refunds', 'p_after'],
      [db2, 'refund_total'],
      'id',
      words(
        'id state payment_key order_id amount currency reason is_auto decided_by provider_refund_id tries error created_at next_attempt_at braked_at sent_at',
      ),
    ),
    events: events(ports),
    audit: audit(ports),
    'dead-letters': letters(ports),
  };
}

function pools({ db1 }: ListPorts): ListSource {
  return {
    query: POOL_QUERY,
    columns: words(
      'pool_id status capacity available reserved consumed is_active opens_at closes_at max_per_user max_quantity hold_sec require_auth commit_rate_per_sec confirm_by price currency payment_tenant cell',
    ),
    page: (_, last, p_limit) => db1<Row>('pool_list', { p_after: last ?? '', p_limit }),
    keyOf: ({ pool_id }) => pool_id,
    total: async () => only(await db1<Total>('pool_total', {})),
  };
}

function events({ webhook, db2 }: ListPorts): ListSource {
  const chosen = (filters: Filters, limit: number) =>
    filterArgs({ ...filterOf({ ...filters, limit }), newestFirst: true });
  return {
    query: EVENTS_QUERY,
    columns: words(
      'id event_id event_type status provider name attempts takeovers error occurred_at received_at processed_at last_attempt_at next_attempt_at skipped_by backfilled webhook_id',
    ),
    page: (filters, p_after, limit) =>
      webhook<Row>('list_events', { ...chosen(filters, limit), p_after: p_after ?? null }),
    keyOf: ({ id }) => id,
    async total(filters) {
      if (filters.path !== undefined)
        throw new HttpError('invalid_input', 'Events that a path finds are not counted.');
      const { p_webhook_id, p_event_id, p_provider, p_since, p_until, p_event_type, p_error } = chosen(
        filters,
        1,
      );
      const p_status = filters.status ?? null;
      const args = {
        p_webhook_id,
        p_event_id,
        p_provider,
        p_since,
        p_until,
        p_event_type,
        p_error,
        p_status,
      };
      return only(await db2<Total>('event_total', args));
    },
  };
}

/** Each cell numbers its own rows: an export goes cell by cell. */
function audit({ db1, db2, cells }: ListPorts): ListSource {
  const cellsOf = ({ db = 1, cell }: Filters): readonly (string | undefined)[] =>
    db === 2 ? [undefined] : cell !== undefined ? [String(cell)] : cells.length > 0 ? cells : [undefined];
  const call = ({ db = 1 }: Filters) => (db === 2 ? db2 : db1);
  const inCell = (cell: string | undefined) => cell !== undefined && { p_cell: cell };
  return {
    query: AUDIT_QUERY,
    columns: words('id at actor action subject reason details cell'),
    async page(filters, after, p_limit) {
      const places = cellsOf(filters);
      const [at, p_before] = (after as [number, unknown] | null) ?? [0, null];
      const args = { ...auditFilters(filters), p_before, p_limit, ...inCell(places[at]) };
      const rows = await call(filters)<Row>('audit_page', args);
      const here = rows.map((row) => ({ ...row, ...(places.length > 1 && { place: at }) }));
      if (rows.length === p_limit || at + 1 >= places.length) return here;
      return [...here, ...(await this.page(filters, [at + 1, null], p_limit - rows.length))];
    },
    keyOf: ({ id, place = 0 }) => [place, id],
    async total(filters) {
      const { cell } = filters;
      const args = { ...auditFilters(filters), ...(filters.db !== 2 && inCell(cell as string | undefined)) };
      return only(await call(filters)<Total>('audit_total', args));
    },
  };
}

function letters({ db1 }: ListPorts): ListSource {
  const chosen = ({ pool_id = null, reason = null, older_than_sec }: Filters): Args => ({
    p_pool_id: pool_id,
    p_reason: reason,
    p_older_than: older_than_sec === undefined ? null : `${older_than_sec} seconds`,
  });
  return {
    query: DEAD_LETTER_QUERY,
    columns: words(
      'msg_id pool_id claim_id claim_state user_id resource_id reason dead_since final_read_ct original_msg_id ending cell',
    ),
    page: (filters, p_after, p_limit) =>
      db1<Row>('list_dead_letters', { ...chosen(filters), p_after: p_after ?? 0, p_limit }),
    keyOf: ({ msg_id }) => msg_id,
    total: async (filters) => only(await db1<Total>('dead_letter_total', chosen(filters))),
  };
}

/** The filters of a list, without what chooses a page, and with `more`. */
export function filtersOf(query: ObjectSchema, more: { readonly [name: string]: Schema }): ObjectSchema {
  const kept = Object.entries(query.properties).filter(([name]) => !OF_THE_PAGE.has(name));
  return { ...query, properties: { ...Object.fromEntries(kept), ...more } };
}
