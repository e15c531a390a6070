// Every metric that this process counts itself. The values of a label that are known beforehand start at 0: Prometheus sees
// no increase in a series that begins with its first event. The series of endpoints start in src/webhook/series.ts.

export interface Described {
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  /** By name, the values known beforehand. */
  readonly labels: Readonly<Record<string, readonly string[]>>;
  readonly buckets?: readonly number[];
  /** What several processes of one command say together; their sum where left out. */
  readonly together?: 'max';
}

/** From an indexed insert to the longest call a handler may make. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
/** Up to what a flush of the claim door carries. */
const SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/** Groups of paths, as the label `route` names them; `none` is a path that matches no route. */
export const ROUTE_GROUPS = [
  'claims',
  'pools',
  'webhooks',
  'calls',
  'admin',
  'health',
  'metrics',
  'pages',
  'none',
] as const;
export type RouteGroup = (typeof ROUTE_GROUPS)[number];
const STATUSES = ['2xx', '4xx', '5xx'];

const CLAIM_OUTCOMES = [
  'claimed',
  'same',
  'sold_out',
  'not_enough',
  'quantity_refused',
  'secret_required',
  'limit',
  'address_limit',
  'closed',
  'unknown_pool',
  'auth_required',
  'guests_refused',
  'server_required',
  'challenge_required',
  'challenge_used',
  'busy',
];
const BRIDGE_OUTCOMES = [
  'committed',
  'refused',
  'gone',
  'retry',
  'outage',
  'untried',
  'dead_letter',
  'lost_lease',
];

const INBOX_OUTCOMES = ['recorded', 'failed', 'outage', 'handed_back', 'dead_letter', 'lost_lease'];

/** Of all three lanes of paid orders; docs/metrics.md says which are whose. */
const ORDER_OUTCOMES = [
  'funds',
  'refund',
  'void',
  'ignored',
  'voided',
  'unknown',
  'expired',
  'complete',
  'processing',
  'pulled',
  'skipped',
  'typescript',
  'in_flight',
  'open',
  'sent',
  'done',
  'refused',
  'outage',
  'failed',
  'dead_letter',
  'key',
  'lost_lease',
  'handed_back',
];
const CHECKOUT_OUTCOMES = ['created', 'again', 'outage', 'refused', 'burnt', 'key'];

export const METRICS: Readonly<Record<string, Described>> = {
  sluice_processes: {
    kind: 'gauge',
    help: 'Processes whose numbers this page adds up.',
    labels: {},
  },
  sluice_http_requests_total: {
    kind: 'counter',
    help: 'Requests that the server answered.',
    labels: { route: ROUTE_GROUPS, status: STATUSES },
  },
  sluice_http_request_seconds: {
    kind: 'histogram',
    help: 'From the whole request to the answer.',
    labels: { route: [] },
    buckets: SECONDS,
  },
  sluice_limited_total: {
    kind: 'counter',
    help: 'What was answered 429 because its address had sent too much of it.',
    labels: { limit: ['claims', 'deliveries', 'sign_ins', 'streams'] },
  },
  sluice_claims_one_address_minutes_total: {
    kind: 'counter',
    help: 'Minutes in which one address made more than half of at least 100 claims while no proxy was declared.',
    labels: {},
    // Each process notices the same minute.
    together: 'max',
  },
  sluice_claims_total: {
    kind: 'counter',
    help: 'Claims that the database has answered, by its answer.',
    labels: { outcome: CLAIM_OUTCOMES },
  },
  sluice_claim_batch_size: {
    kind: 'histogram',
    help: 'Claims that left in one statement.',
    labels: {},
    buckets: SIZES,
  },
  sluice_claim_batch_seconds: {
    kind: 'histogram',
    help: 'How long that statement took.',
    labels: {},
    buckets: SECONDS,
  },
  sluice_claim_pools_stuck: {
    kind: 'gauge',
    help: 'Pools whose claims met an obstacle and go by themselves until they have come through.',
    labels: {},
    // A pool that is stuck is stuck in every process.
    together: 'max',
  },
  sluice_bridge_deliveries_total: {
    kind: 'counter',
    help: 'Messages that a worker took, by what became of them.',
    labels: { outcome: BRIDGE_OUTCOMES },
  },
  sluice_bridge_step_seconds: {
    kind: 'histogram',
    help: 'From taking a batch to finishing it.',
    labels: {},
    buckets: SECONDS,
  },
  sluice_bridge_breaker_open: {
    kind: 'gauge',
    help: 'Workers here that find the target down, and leave it alone until it answers again.',
    labels: { target: ['ledger'] },
  },
  sluice_order_breaker_open: {
    kind: 'gauge',
    help: 'Workers of paid orders here that find the target down, and leave it alone until it answers again.',
    labels: { target: ['DB2', 'Stripe'] },
  },
  webhook_handler_breaker_open: {
    kind: 'gauge',
    help: 'Workers here that leave a handler alone because it failed event after event.',
    labels: { handler: ['webhook.apply_payment', 'webhook.apply_side_effect'] },
  },
  sluice_ledger_tickets_total: {
    kind: 'counter',
    help: 'Claims that were brought to the ledger, by its answer.',
    labels: { outcome: ['committed', 'already', 'conflict'] },
  },
  sluice_ledger_commit_seconds: {
    kind: 'histogram',
    help: 'How long one call of the ledger took.',
    labels: { result: [] },
    buckets: SECONDS,
  },
  sluice_inbox_accepted_total: {
    kind: 'counter',
    help: 'Deliveries that DB2 could not take and that this server committed to the inbox.',
    labels: { kind: ['event', 'call'] },
  },
  sluice_inbox_deliveries_total: {
    kind: 'counter',
    help: 'Deliveries of the inbox that a worker took, by what became of them.',
    labels: { outcome: INBOX_OUTCOMES },
  },
  sluice_checkouts_total: {
    kind: 'counter',
    help: 'Requests for a page to pay on, by what became of them.',
    labels: { outcome: CHECKOUT_OUTCOMES },
  },
  sluice_order_work_total: {
    kind: 'counter',
    help: 'Payments, voids, sessions and refunds that a worker took, by what became of them.',
    labels: { lane: ['courier', 'closer', 'finder', 'refunder'], outcome: ORDER_OUTCOMES },
  },
  webhook_processing_total: {
    kind: 'counter',
    help: 'Tries to let an event take effect, by what became of them.',
    labels: { webhook_id: [], provider: [], result: [] },
  },
  webhook_dead_letter_total: {
    kind: 'counter',
    help: 'Events that went to the dead letters.',
    labels: { webhook_id: [], provider: [], reason: [] },
  },
  webhook_processing_seconds: {
    kind: 'histogram',
    help: 'How long a try took; in a batch, until the batch was committed.',
    labels: { provider: [], result: [] },
    buckets: SECONDS,
  },
  webhook_comparisons_total: {
    kind: 'counter',
    help: 'Hourly comparisons of an endpoint with its provider, by how they ended.',
    labels: { webhook_id: [], provider: [], result: [] },
  },
  webhook_missing_total: {
    kind: 'counter',
    help: 'Events with a handler that such a comparison found missing, and recorded.',
    labels: { webhook_id: [], provider: [] },
  },
  call_events_total: {
    kind: 'counter',
    help: 'Call events, by what became of them.',
    labels: { site: [], result: [], reason: [] },
  },
};
