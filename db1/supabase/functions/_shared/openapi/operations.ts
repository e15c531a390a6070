// What each operation of the description is called, and a request to it that runs. A test sends all of them to a real server.
// Names are what a person would call the function of a client made from the description.

export interface Operation {
  readonly id: string;
  /** What stands in the path for its parameter. */
  readonly path?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Readonly<Record<string, unknown>>;
}

/** `npm start` puts this pool on sale. */
const POOL = 'demo_concert_2026';
const USER = 'ann';
const SECRET = { 'X-Claim-Secret': 'a-long-random-text' };
const CLAIM = '019c8f5e-2a00-7abc-8def-0123456789ab';
const ORDER = '019c8f5e-2a00-7abc-8def-0123456789ac';
const TICKET = '019c8f5e-2a00-7abc-8def-0123456789ad';
const EVENT = '8d7f4c1e-52c3-4b0e-9b8e-3f1d2a6c7b50';
const CALL = '5e0c9a34-1f77-4c55-8a0b-6d2e9f4b8c11';
const SITE = 'hotel';
const OPERATOR = 'Ada Lovelace';
const REFUND = 'settle:stripe/pi_1';
const ISSUE = '0ffbd818-fb3c-7289-8862-e4826795fa04';
const LETTER = '7';
const WHY = { reason: 'the handler is mended' };
const LETTERS = { msg_ids: [7], ...WHY };
const EVENTS = { ids: [EVENT], ...WHY };
const REFUNDS = { ids: [REFUND], ...WHY };

/** By "METHOD /path", as in the route. */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  'POST /v1/pools/:pool/claims': {
    id: 'claimSlot',
    path: POOL,
    headers: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
    body: { user_id: USER, request_id: 'order-1', secret: 'a-long-random-text' },
  },
  'GET /v1/claims/:claim': { id: 'getClaim', path: CLAIM, headers: SECRET },
  'DELETE /v1/claims/:claim': { id: 'releaseClaim', path: CLAIM, headers: SECRET },
  'POST /v1/claims/:claim/checkout': { id: 'startCheckout', path: ORDER, headers: SECRET },
  'GET /v1/pools/:pool': { id: 'getPool', path: POOL },
  'GET /v1/pools/:pool/live': { id: 'followPool', path: POOL },
  'GET /v1/pools/:pool/challenge': { id: 'getChallenge', path: POOL },
  'GET /v1/login': { id: 'getLogin' },
  'GET /healthz': { id: 'checkAlive' },
  'GET /readyz': { id: 'checkReady' },
  'GET /openapi.json': { id: 'getDescription' },
  'GET /metrics': { id: 'getMetrics' },
  'POST /v1/tickets/check': { id: 'checkTicket', body: { token: 'https://tickets.example.com/t/v1.abc' } },
  'POST /webhooks/:endpoint': { id: 'deliverEvents', path: 'stripe' },
  'GET /webhooks/:endpoint': { id: 'answerHandshake', path: 'whatsapp' },
  'POST /call-events': {
    id: 'deliverCall',
    body: { event_id: 'call-1', kind: 'ring', occurred_at: '2026-02-24T10:00:00Z', payload: { line: 7 } },
  },

  'GET /admin/pools': { id: 'listPools' },
  'POST /admin/pools': { id: 'createPool', body: { pool_id: 'opening_night', slots: 500, max_per_user: 2 } },
  'GET /admin/pools/:pool': { id: 'getPoolRules', path: POOL },
  'POST /admin/pools/:pool': { id: 'changePool', path: POOL, body: { add_slots: 50, ...WHY } },
  'GET /admin/pools/:pool/details': { id: 'getPoolDetails', path: POOL },
  'POST /admin/pools/:pool/details': {
    id: 'setPoolDetails',
    path: POOL,
    body: { title: 'Opening night', starts_at: '2026-09-24T19:30:00Z', time_zone: 'Europe/Vienna' },
  },
  'GET /admin/claims': { id: 'searchClaims', query: { user_id: USER } },
  'GET /admin/claims/:claim': { id: 'getClaimTimeline', path: CLAIM },
  'POST /admin/claims/:claim/release': { id: 'releaseClaimAsOperator', path: CLAIM, body: WHY },
  'POST /admin/claims/void': { id: 'voidTickets', body: { claim_ids: [TICKET], ...WHY } },
  'GET /admin/orders': { id: 'searchOrders', query: { user_id: USER } },
  'GET /admin/orders/:order': { id: 'getOrderTimeline', path: ORDER },
  'GET /admin/tickets': { id: 'searchTickets', query: { user_id: USER } },
  'GET /admin/tickets/:ticket': { id: 'getTicketTimeline', path: TICKET },
  'GET /admin/payments': { id: 'searchPayments', query: { user_id: USER } },
  'GET /admin/payments/:payment': { id: 'getPaymentTimeline', path: 'stripe/pi_1' },
  'GET /admin/credits': { id: 'searchCredits', query: { user_id: USER } },
  'GET /admin/refunds': { id: 'searchRefunds' },
  'GET /admin/refunds/:refund': { id: 'getRefund', path: REFUND },
  'POST /admin/refunds/send': { id: 'sendRefunds', body: REFUNDS },
  'POST /admin/refunds/skip': { id: 'skipRefunds', body: REFUNDS },
  'GET /admin/users/:user/summary': { id: 'getUserSummary', path: USER },
  'POST /admin/users/export': { id: 'exportUser', body: { user_id: USER } },
  'POST /admin/users/erase': { id: 'eraseUser', body: { user_id: 'bob' } },
  'GET /admin/issues': { id: 'listIssues', query: { state: 'open' } },
  'GET /admin/issues/:issue': { id: 'getIssue', path: ISSUE },
  'POST /admin/issues/:issue/replay': { id: 'replayIssue', path: ISSUE, body: WHY },
  'POST /admin/issues/:issue/resolve': { id: 'resolveIssue', path: ISSUE, body: WHY },
  'GET /admin/dlq': { id: 'listDeadLetters' },
  'GET /admin/dlq/:msg_id': { id: 'getDeadLetter', path: LETTER },
  'POST /admin/dlq/replay': { id: 'replayDeadLetters', body: LETTERS },
  'POST /admin/dlq/discard': { id: 'discardDeadLetters', body: LETTERS },
  'GET /admin/webhooks/inbox': { id: 'listInbox' },
  'POST /admin/webhooks/inbox/replay': { id: 'replayInbox', body: LETTERS },
  'POST /admin/webhooks/inbox/discard': { id: 'discardInbox', body: LETTERS },
  'GET /admin/webhooks/endpoints': { id: 'listEndpoints' },
  'POST /admin/webhooks/endpoints': {
    id: 'addEndpoint',
    body: { name: 'shop_two', provider: 'stripe', secret_names: ['STRIPE_WEBHOOK_SECRET'] },
  },
  'POST /admin/webhooks/endpoints/change': {
    id: 'changeEndpoint',
    body: { name: 'stripe', changes: { max_attempts: 5 } },
  },
  'POST /admin/webhooks/endpoints/rotate': {
    id: 'rotateEndpoint',
    body: { name: 'stripe', secret_names: ['STRIPE_WEBHOOK_SECRET'], ...WHY },
  },
  'GET /admin/webhooks/events': { id: 'searchEvents', query: { status: 'dead_letter' } },
  'GET /admin/webhooks/events/:id': { id: 'getEvent', path: EVENT },
  'POST /admin/webhooks/events/replay': { id: 'replayEvents', body: EVENTS },
  'POST /admin/webhooks/events/skip': { id: 'skipEvents', body: EVENTS },
  'GET /admin/webhooks/payments': { id: 'listUnnamedPayments' },
  'POST /admin/webhooks/payments/name': {
    id: 'nameUserOfPayment',
    body: { tenant: 'stripe', payment: 'pi_1', user_id: USER },
  },
  'GET /admin/calls': { id: 'searchCalls', query: { kind: 'ring' } },
  'GET /admin/calls/:id': { id: 'getCall', path: CALL },
  'GET /admin/sites': { id: 'listSites' },
  'POST /admin/sites': {
    id: 'addSite',
    body: { site_id: 'branch-7', secret_names: ['OPS_SITE_SECRET'], kinds: ['ring', 'hangup'] },
  },
  'GET /admin/sites/:site': { id: 'getSite', path: SITE },
  'POST /admin/sites/:site': { id: 'changeSite', path: SITE, body: { on_outage: 'accept', ...WHY } },
  'POST /admin/sites/:site/rotate': {
    id: 'rotateSite',
    path: SITE,
    body: { secret_names: ['OPS_SITE_SECRET'], ...WHY },
  },
  'GET /admin/operators': { id: 'listOperators' },
  'POST /admin/operators': { id: 'addOperator', body: { name: 'Zoë Müller', role: 'viewer' } },
  'POST /admin/operators/:operator/rotate': { id: 'rotateOperator', path: OPERATOR, body: WHY },
  'POST /admin/operators/:operator/revoke': { id: 'revokeOperator', path: OPERATOR, body: WHY },
  'GET /admin/search': { id: 'search', query: { q: USER } },
  'GET /admin/totals/:list': { id: 'countRows', path: 'claims' },
  'GET /admin/export/:list': { id: 'exportRows', path: 'claims', query: { format: 'csv' } },
  'GET /admin/audit': { id: 'readAuditLog' },
  'GET /admin/health': { id: 'checkHealth' },
  'GET /admin/live': { id: 'followNumbers' },
  'GET /admin/samples': { id: 'getHistory', query: { range: '1h' } },
  'POST /admin/session': { id: 'signIn', body: { key: 'your-key' } },
  'GET /admin/session': { id: 'getSession' },
  'DELETE /admin/session': { id: 'signOut' },
};
