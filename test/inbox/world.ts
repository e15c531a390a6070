// Two databases behind wires that can be cut or go silent, and a server whose endpoints accept deliveries while DB2 is away.

import assert from 'node:assert/strict';
import type pg from 'pg';
import { NO_METRICS } from '#core/ports.ts';
import { startProxy as startWire, type WireProxy } from '../../chaos/proxy.ts';
import { createRandom } from '../../chaos/random.ts';
import { carryInboxOnce, type InboxCarried } from '../../src/inbox/crew.ts';
import { createLog } from '../../src/log.ts';
import { createMetrics } from '../../src/metrics.ts';
import { type RunningServer, startServer } from '../../src/server/server.ts';
import { processOnce } from '../../src/webhook/crew.ts';
import { NO_HANDLERS } from '../../src/webhook/handlers.ts';
import { startProxy, type Proxy as WireWithReplies } from '../bridge/proxy.ts';
import { SECRETS as SITE_SECRETS } from '../calls/support.ts';
import { ADMIN_KEY, type Answer, JWT_SECRET, openClient } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { addEndpoint, paymentEvent, SECRETS, type Sending, send } from '../webhook/world.ts';

export const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
/** Far longer than any test needs to wait. */
const PATIENCE_MS = 20_000;

export class InboxWorld {
  readonly databases: TestDatabases;
  /** Between the server and DB1, and between all processes and DB2. */
  readonly wires: { readonly db1: WireProxy; readonly db2: WireProxy };
  /** In front of the wire of DB2: can lose the reply to one request. */
  readonly replies: WireWithReplies;
  readonly db1: pg.Client;
  readonly db2: pg.Client;
  readonly servers: RunningServer[] = [];
  readonly metrics = createMetrics();

  constructor(
    databases: TestDatabases,
    wires: InboxWorld['wires'],
    replies: WireWithReplies,
    clients: { db1: pg.Client; db2: pg.Client },
  ) {
    this.databases = databases;
    this.wires = wires;
    this.replies = replies;
    this.db1 = clients.db1;
    this.db2 = clients.db2;
  }

  /** `stripe` and `twilio` accept, `refusing` does not; all are queued. */
  static async start(): Promise<InboxWorld> {
    process.env.SLUICE_LOG ??= 'silent';
    const databases = await startDatabases();
    const wire = (url: string) => startWire(() => Number(new URL(url).port), createRandom(1));
    const wires = { db1: await wire(databases.db1.url), db2: await wire(databases.db2.url) };
    const replies = await startProxy(at(databases.db2.url, wires.db2.port));
    const clients = { db1: await openClient(databases.db1.url), db2: await openClient(databases.db2.url) };
    const world = new InboxWorld(databases, wires, replies, clients);
    await addEndpoint(world.db2, 'twilio', 'twilio', 'queued');
    await addEndpoint(world.db2, 'stripe', 'stripe', 'queued', { on_outage: 'accept' });
    await addEndpoint(world.db2, 'refusing', 'stripe', 'queued');
    return world;
  }

  async stop(): Promise<void> {
    this.heal();
    await Promise.all(this.servers.map((server) => server.stop()));
    await Promise.all([this.db1.end(), this.db2.end()]);
    await this.replies.close();
    await Promise.all([this.wires.db1.close(), this.wires.db2.close()]);
    await this.databases.stop();
  }

  async startServer(): Promise<RunningServer> {
    const server = await startServer({
      port: 0,
      db1Url: at(this.databases.db1.url, this.wires.db1.port),
      db2Url: this.replies.url,
      adminKey: ADMIN_KEY,
      jwtSecret: JWT_SECRET,
      secretOf: (name) => ({ ...SECRETS, ...SITE_SECRETS })[name],
      metrics: this.metrics,
    });
    this.servers.push(server);
    return server;
  }

  /** Until the copy in DB1 has what DB2 has now. */
  async copied(kind: string, name: string): Promise<void> {
    const look = 'select door from public.copied_door($1, $2)';
    await until(async () => (await this.db1.query(look, [kind, name])).rows[0].door !== null);
  }

  /** Until the copy in DB1 is of a look that a server has had into DB2 after this call. */
  async copiedAgain(): Promise<void> {
    const { rows } = await this.db2.query('select clock_timestamp() as now');
    const look = 'select from intake.doors_copied where read_at > $1';
    await until(async () => (await this.db1.query(look, [rows[0].now])).rowCount === 1);
  }

  cut(): void {
    this.wires.db2.begin({ kind: 'cut' });
  }

  silence(): void {
    this.wires.db2.begin({ kind: 'half-open', swallows: 'requests' });
  }

  heal(): void {
    this.wires.db1.heal();
    this.wires.db2.heal();
  }

  /** Heals the wires and waits until the server records in DB2 again: its breaker may still be open. */
  async recover(server: RunningServer): Promise<void> {
    this.heal();
    await until(async () => {
      const { json } = await this.post(server, 'stripe', `evt_${crypto.randomUUID()}`);
      return json.status === 'recorded';
    });
    await until(async () => {
      await this.carry();
      return (await this.waiting()) === 0;
    });
  }

  post(server: RunningServer, endpoint: string, id: string, more: Partial<Sending> = {}): Promise<Answer> {
    return send({
      url: `${server.url}/webhooks/${endpoint}`,
      provider: 'stripe',
      body: paymentEvent(id),
      ...more,
    });
  }

  /** A status of a call, as Twilio tells it. */
  ring(server: RunningServer, sid: string, more: Partial<Sending> = {}): Promise<Answer> {
    return send({
      url: `${server.url}/webhooks/twilio`,
      provider: 'twilio',
      body: `CallSid=${sid}&CallStatus=completed&CallDuration=7`,
      headers: FORM,
      ...more,
    });
  }

  /** What a worker carries until nothing is due. */
  carry(): Promise<InboxCarried> {
    const { db1, db2 } = this.databases;
    const options = { db1Url: db1.url, db2Url: at(db2.url, this.wires.db2.port), metrics: NO_METRICS };
    return carryInboxOnce({ ...options, log: createLog('silent') }, new AbortController().signal);
  }

  /** What a worker does with recorded events until none is due. */
  process() {
    const options = { workers: 1, batchSize: 100, handlers: NO_HANDLERS, metrics: NO_METRICS };
    return processOnce(
      { db2Url: this.databases.db2.url, ...options, log: createLog('silent') },
      new AbortController().signal,
    );
  }

  async waiting(): Promise<number> {
    return (await this.db1.query('select count(*)::int as n from pgmq.q_event_inbox')).rows[0].n;
  }

  async events(id: string): Promise<{ status: string; received_at: Date }[]> {
    const sql = 'select status::text, received_at from public.webhook_events where event_id = $1';
    return (await this.db2.query(sql, [id])).rows;
  }
}

export function at(url: string, port: number): string {
  const moved = new URL(url);
  moved.port = String(port);
  return moved.href;
}

export async function until(isSo: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await isSo())) {
    assert.ok(Date.now() < deadline, 'it did not happen');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
