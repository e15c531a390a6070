// DB2 is away, and each of two cells fails over meanwhile. Twilio goes on as it does: an answer within 15 s, one retry included, or
// the event is lost. CELLS_OUTAGE_SEC=600 makes the outage ten minutes; it lasts at least as long as the two failovers take.

import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Cell } from '../../chaos/cells/cell.ts';
import { prepareCells, until } from '../../chaos/cells/servers.ts';
import { LEASE_SEC, startProcesses } from '../../chaos/cells/world.ts';
import { startProxy } from '../../chaos/proxy.ts';
import { createRandom } from '../../chaos/random.ts';
import { withClient } from '../../src/migrate/sql.ts';
import { LOOPBACK } from '../../src/stack/ports.ts';
import { startDatabases, type TestDatabase } from '../support/databases.ts';
import { addEndpoint, send } from '../webhook/world.ts';

const OUTAGE_SEC = Number(process.env.CELLS_OUTAGE_SEC ?? 0);
const EVENTS_PER_SEC = 5;
/** Before, between and after what breaks, in a short outage too. */
const QUIET_SEC = Math.max(2, OUTAGE_SEC / 10);
/** All tries of one event together. */
const TWILIO_MS = 15_000;
const TWILIO_TRIES = 2;
const FAILOVER_MS = 120_000;
const DRAIN_MS = 600_000;
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
/** `refusing` is the control: what it is sent during the outage is lost. */
const ENDPOINTS = ['accepting', 'refusing'] as const;
type Endpoint = (typeof ENDPOINTS)[number];

/** What Twilio sent, and how it was answered. */
interface Delivery {
  readonly endpoint: Endpoint;
  readonly id: string;
  readonly isTaken: boolean;
  readonly tries: number;
  readonly tookMs: number;
}

it('an event that Twilio sends while DB2 is away and cells fail over is answered in time, and is there once', async (context) => {
  const reason = await prepareCells();
  if (reason !== undefined) return context.skip(reason);
  const world = await startWorld();
  try {
    const twilio = new Twilio(world.url);
    await pause(QUIET_SEC * 1_000);
    const startMs = performance.now();
    await world.stopLedger();
    for (const cell of world.cells) {
      await pause(QUIET_SEC * 1_000);
      await failOver(cell);
    }
    const leftMs = OUTAGE_SEC * 1_000 - (performance.now() - startMs);
    await pause(Math.max(QUIET_SEC * 1_000, leftMs));
    const outageSec = (performance.now() - startMs) / 1_000;
    await world.startLedger();
    await pause(QUIET_SEC * 1_000);
    await judge(context, await twilio.stop(), world, outageSec);
  } finally {
    await world.stop();
  }
});

async function judge(
  context: TestContext,
  deliveries: readonly Delivery[],
  world: World,
  outageSec: number,
): Promise<void> {
  const [accepting, refusing] = ENDPOINTS.map((name) =>
    deliveries.filter(({ endpoint }) => endpoint === name),
  ) as [Delivery[], Delivery[]];
  const counts = await world.counts();
  const slowest = Math.round(Math.max(...accepting.map(({ tookMs }) => tookMs)));
  const retried = accepting.filter(({ tries }) => tries > 1).length;
  context.diagnostic(
    `DB2 away for ${Math.round(outageSec)} s, ${world.cells.length} failovers: ${accepting.length} events, ${retried} of them sent twice, the slowest answered after ${slowest} ms; where endpoints refuse ${refusing.filter(({ isTaken }) => !isTaken).length} of ${refusing.length} were lost`,
  );
  assert.deepEqual(
    accepting.filter(({ isTaken }) => !isTaken),
    [],
    'not answered 2xx in time',
  );
  assert.deepEqual(
    accepting.flatMap(({ id }) => (counts.get(id) === '1 event, 1 effect' ? [] : [[id, counts.get(id)]])),
    [],
    'not there once',
  );
  assert.ok(
    refusing.some(({ isTaken }) => !isTaken),
    'the control lost nothing: DB2 was not away',
  );
  assert.deepEqual(world.surprises, []);
}

/** kill -9 of the primary; ends when another node leads and all three are in step. */
async function failOver(cell: Cell): Promise<void> {
  const primary = await cell.ready();
  primary.killPatroni();
  primary.killPostgres();
  await until(
    'another node leads',
    async () => ![undefined, primary].includes(await cell.primary()),
    FAILOVER_MS,
  );
  await cell.heal();
}

/** Sends events at a fixed pace, whatever becomes of earlier ones, to both endpoints in turn. */
class Twilio {
  readonly #url: string;
  readonly #deliveries: Promise<Delivery>[] = [];
  readonly #running: Promise<void>;
  #isStopped = false;

  constructor(url: string) {
    this.#url = url;
    this.#running = this.#run();
  }

  async stop(): Promise<Delivery[]> {
    this.#isStopped = true;
    await this.#running;
    return Promise.all(this.#deliveries);
  }

  async #run(): Promise<void> {
    for (let number = 1; !this.#isStopped; number++) {
      for (const endpoint of ENDPOINTS)
        this.#deliveries.push(this.#deliver(endpoint, `CA${endpoint}${number}`));
      await pause(1_000 / EVENTS_PER_SEC);
    }
  }

  async #deliver(endpoint: Endpoint, id: string): Promise<Delivery> {
    const startMs = performance.now();
    const tookMs = () => performance.now() - startMs;
    let tries = 0;
    let isTaken = false;
    while (!isTaken && tries < TWILIO_TRIES && tookMs() < TWILIO_MS) {
      tries++;
      const answered = send({
        url: `${this.#url}/webhooks/${endpoint}`,
        provider: 'twilio',
        body: `CallSid=${id}&CallStatus=completed&CallDuration=7`,
        headers: FORM,
      }).then(
        ({ status }) => status,
        () => 0,
      );
      const status = await Promise.race([answered, pause(TWILIO_MS - tookMs(), 0, { ref: false })]);
      isTaken = status >= 200 && status < 300;
    }
    return { endpoint, id, isTaken, tries, tookMs: tookMs() };
  }
}

interface World {
  readonly url: string;
  readonly cells: readonly Cell[];
  readonly surprises: readonly string[];
  stopLedger(): Promise<void>;
  startLedger(): Promise<void>;
  /** Of each call, when nothing waits any more: how many events and effects there are. */
  counts(): Promise<Map<string, string>>;
  stop(): Promise<void>;
}

async function startWorld(): Promise<World> {
  const ends: (() => unknown)[] = [];
  const stop = async (): Promise<void> => {
    for (const end of ends.splice(0).reverse()) await end();
  };
  try {
    const databases = await startDatabases({ db1: false });
    ends.push(() => databases.stop());
    let ledger: TestDatabase = databases.db2;
    const wire = await startProxy(() => ledger.port, createRandom(1));
    ends.push(() => wire.close());
    const attempts = await Promise.allSettled([0, 1].map(() => Cell.start({ side: 'db1' })));
    for (const attempt of attempts)
      if (attempt.status === 'fulfilled') ends.push(() => attempt.value.remove());
    const cells = attempts.map((attempt) => {
      if (attempt.status === 'rejected') throw attempt.reason;
      return attempt.value;
    });
    for (const [number, { url }] of cells.entries())
      await withClient(url, (client) =>
        client.query('select public.cell_join($1, $2, $3)', [nameOf(number), number, 'test']),
      );
    await withClient(ledger.url, async (client) => {
      const settings = { lease_sec: LEASE_SEC, backoff_cap_sec: LEASE_SEC };
      await addEndpoint(client, 'accepting', 'twilio', 'queued', settings);
      await addEndpoint(client, 'refusing', 'twilio', 'queued', { ...settings, on_outage: 'refuse' });
    });
    const surprises: string[] = [];
    const places = {
      SLUICE_CELLS: cells.map(({ url }, number) => `${nameOf(number)}=${url}`).join(','),
      DB2_URL: ledger.url.replace(`:${ledger.port}/`, `:${wire.port}/`),
    };
    const server = await startProcesses(places, surprises, ends);
    for (const cell of cells) await until('doors are copied', () => hasCopy(cell.url), FAILOVER_MS);
    return {
      url: `http://${LOOPBACK}:${server.port}`,
      ...{ cells, surprises, stop },
      async stopLedger() {
        wire.begin({ kind: 'cut' });
        await ledger.stop('immediate');
      },
      async startLedger() {
        ledger = await ledger.restart();
        wire.heal();
      },
      async counts() {
        for (const { url } of cells) await until('the inbox is empty', () => isEmpty(url), DRAIN_MS, 500);
        await until('all events took effect', () => isDone(ledger.url), DRAIN_MS, 500);
        return countsOf(ledger.url);
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

const nameOf = (number: number): string => String.fromCharCode('a'.charCodeAt(0) + number);

const hasCopy = (url: string): Promise<boolean> =>
  withClient(url, async (client) => {
    const { rows } = await client.query(`select door from public.copied_door('endpoint', 'refusing')`);
    return rows[0].door !== null;
  });

const isEmpty = (url: string): Promise<boolean> =>
  withClient(url, async (client) => {
    const { rowCount } = await client.query(
      'select from pgmq.q_event_inbox union all select from pgmq.q_event_inbox_dlq limit 1',
    );
    return rowCount === 0;
  });

const isDone = (url: string): Promise<boolean> =>
  withClient(url, async (client) => {
    const { rowCount } = await client.query(
      `select from public.webhook_events where status <> 'success' limit 1`,
    );
    return rowCount === 0;
  });

const countsOf = (url: string): Promise<Map<string, string>> =>
  withClient(url, async (client) => {
    const { rows } = await client.query(
      `select e.payload ->> 'CallSid' as sid, count(distinct e.id) as events, count(s.event_id) as effects
       from public.webhook_events e
       left join public.webhook_side_effects s on s.provider = e.provider and s.event_id = e.event_id
       group by 1`,
    );
    return new Map(
      rows.map(({ sid, events, effects }) => [
        sid,
        `${events} event${events === '1' ? '' : 's'}, ${effects} effect${effects === '1' ? '' : 's'}`,
      ]),
    );
  });
