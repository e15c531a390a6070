import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import type { Log } from '#core/ports.ts';
import { createLog } from '../../src/log.ts';
import { openTracing } from '../../src/tracing/tracing.ts';
import { memoryLog } from '../core/support.ts';
import { ADMIN_KEY, claim, JWT_SECRET, openClient, putOnSale } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { PROJECT } from '../support/dev.ts';
import { addEndpoint, paymentEvent, SECRETS, send } from '../webhook/world.ts';
import { sluice } from '../work/support.ts';
import { type Collector, startCollector } from './collector.ts';

const log: Log = createLog('silent');
const CLAIM = '0b5c1f8e-6c7a-4f0e-9d51-2f4c1f3f9a10';
const TRACE = CLAIM.replaceAll('-', '');

const span = (name: string, isRoot = false, subject = CLAIM) => ({
  name,
  subject,
  isRoot,
  kind: 'server' as const,
  startMs: 1_770_000_000_000,
  endMs: 1_770_000_000_005,
  attributes: {},
});

describe('the way of one claim', () => {
  let databases: TestDatabases;
  let collector: Collector;
  let db1: pg.Client;
  let db2: pg.Client;
  let env: Record<string, string>;

  before(async () => {
    databases = await startDatabases();
    collector = await startCollector();
    db1 = await openClient(databases.db1.url);
    db2 = await openClient(databases.db2.url);
    env = {
      DB1_URL: databases.db1.url,
      DB2_URL: databases.db2.url,
      SLUICE_ADMIN_KEY: ADMIN_KEY,
      SLUICE_JWT_SECRET: JWT_SECRET,
      SLUICE_PORT: '0',
      OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/`,
      ...SECRETS,
    };
  });

  after(async () => {
    await Promise.all([db1?.end(), db2?.end(), collector?.stop()]);
    await databases?.stop();
  });

  it('through two processes is one trace: door, bridge, ledger; and so is the way of one event', async () => {
    await putOnSale(db1, 'show', 1);
    await addEndpoint(db2, 'shop', 'stripe', 'queued');
    const server = sluice(['serve'], env);
    const [, url = ''] = await server.said(/Sluice listens on (http:\S+)/);
    const request = { user_id: 'ann', request_id: 'r' };
    const { json } = await claim(url, 'show', request);
    await claim(url, 'show', request);
    await send({ url: `${url}/webhooks/shop`, provider: 'stripe', body: paymentEvent('evt_1') });
    const { code } = await sluice(['work', '--once'], env).ended;
    assert.equal(code, 0);
    server.child.kill('SIGTERM');
    await server.ended;

    const traceId = json.claim_id.replaceAll('-', '');
    const rootId = traceId.slice(16);
    const ofClaim = collector.spans.filter((one) => one.traceId === traceId);
    assert.deepEqual(
      ofClaim
        .map(({ service, name, parentSpanId, attributes }) => [
          service,
          name,
          parentSpanId ?? '',
          attributes['sluice.outcome'],
        ])
        .sort(),
      [
        ['sluice-serve', 'claim', '', 'claimed'],
        ['sluice-serve', 'claim', rootId, 'same'],
        ['sluice-work', 'bridge', rootId, 'committed'],
        ['sluice-work', 'ledger', rootId, 'committed'],
      ],
    );
    assert.equal(ofClaim.find(({ parentSpanId }) => !parentSpanId)?.spanId, rootId);

    const { rows } = await db2.query('select id from public.webhook_events');
    const ofEvent = collector.spans.filter((one) => one.traceId === rows[0].id.replaceAll('-', ''));
    assert.deepEqual(ofEvent.map(({ service, name }) => `${service} ${name}`).sort(), [
      'sluice-serve webhook',
      'sluice-work process',
    ]);
    assert.doesNotMatch(JSON.stringify(collector.spans), /ann/);
  });

  describe('whose caller sends traceparent', () => {
    /** A span of the shop: the buyer's click. */
    const SHOP = '0af7651916cd43dd8448eb211c80319c';
    const CLICK = 'b7ad6b7169203331';
    let hook: HeadersOfCalls;
    before(async () => {
      hook = await startHook();
      await db1.query(`select public.allow_hook_host($1, 'test')`, [hook.host]);
      await putOnSale(db1, 'asked', 10, { validation_webhook_url: hook.url });
    });
    after(() => hook?.stop());

    /** Claims, carries, and returns the claim and what the hook was sent. */
    async function carry(headers: Record<string, string>, traced = true) {
      hook.calls.length = 0;
      const { OTEL_EXPORTER_OTLP_ENDPOINT: _, ...untraced } = env;
      const server = sluice(['serve'], env);
      const [, url = ''] = await server.said(/Sluice listens on (http:\S+)/);
      const { json } = await claim(url, 'asked', { user_id: 'ann' }, headers);
      server.child.kill('SIGTERM');
      await server.ended;
      assert.equal((await sluice(['work', '--once'], traced ? env : untraced).ended).code, 0);
      assert.equal(hook.calls.length, 1);
      const { rows } = await db2.query('select from public.confirmed_tickets where claim_id = $1', [
        json.claim_id,
      ]);
      assert.equal(rows.length, 1);
      return {
        own: json.claim_id.replaceAll('-', ''),
        sent: hook.calls[0]?.traceparent,
        spansOf: (traceId: string) => collector.spans.filter((span) => span.traceId === traceId),
      };
    }

    it('is one trace from the click to the ticket, and the hook is told its place in it', async () => {
      const { own, sent, spansOf } = await carry({ traceparent: `00-${SHOP}-${CLICK}-01` });
      const claimed = own.slice(16);
      assert.deepEqual(
        spansOf(SHOP)
          .map(({ service, name, parentSpanId }) => [service, name, parentSpanId])
          .sort(),
        [
          ['sluice-serve', 'claim', CLICK],
          ['sluice-work', 'bridge', claimed],
          ['sluice-work', 'hook call', claimed],
          ['sluice-work', 'ledger', claimed],
        ],
      );
      assert.equal(spansOf(SHOP).find(({ name }) => name === 'claim')?.spanId, claimed);
      const call = spansOf(SHOP).find(({ name }) => name === 'hook call');
      assert.equal(sent, `00-${SHOP}-${call?.spanId}-01`);
      assert.deepEqual(spansOf(own), []);
    });

    it('and does not record it is not recorded here either, and the hook is told so', async () => {
      const quiet = SHOP.replace('0a', '1b');
      const { own, sent, spansOf } = await carry({ traceparent: `00-${quiet}-${CLICK}-00` });
      assert.match(String(sent), new RegExp(`^00-${quiet}-[0-9a-f]{16}-00$`));
      assert.deepEqual([...spansOf(quiet), ...spansOf(own)], []);
    });

    it('reaches the hook unchanged through a worker that records nothing', async () => {
      const traceparent = `00-${SHOP}-${CLICK}-01`;
      assert.equal((await carry({ traceparent }, false)).sent, traceparent);
    });

    it('in a form that is not valid has the trace of a claim without: its own', async () => {
      const { own, sent, spansOf } = await carry({ traceparent: `00-${SHOP}-${'0'.repeat(16)}-01` });
      const call = spansOf(own).find(({ name }) => name === 'hook call');
      assert(call !== undefined);
      assert.equal(sent, `00-${own}-${call.spanId}-01`);
      assert.equal((await carry({}, false)).sent, undefined);
    });
  });
});

interface HeadersOfCalls {
  url: string;
  host: string;
  calls: IncomingHttpHeaders[];
  stop(): Promise<void>;
}

/** A pool's hook that says yes. */
async function startHook(): Promise<HeadersOfCalls> {
  const calls: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    calls.push(request.headers);
    request.resume().on('end', () => response.writeHead(200).end());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: `http://${host}/`,
    host,
    calls,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

describe('tracing', () => {
  it('without its collector ends by itself, and the log says what was lost', async () => {
    const log = memoryLog();
    // Nothing listens on the first port of a machine.
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' };
    const { tracer, stop } = await openTracing('test', env, log);
    assert.equal(tracer.isOn, true);
    tracer.record(span('claim', true));
    await stop();
    assert.match(JSON.stringify(log.lines), /traces lost.*ECONNREFUSED/);
  });

  it('keeps or drops a trace as a whole, in every process, by the id alone', async (t) => {
    const collector = await startCollector();
    t.after(() => collector.stop());
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_TRACES_SAMPLER_ARG: '0.5' };
    const door = await openTracing('door', env, log);
    const bridge = await openTracing('bridge', { ...env, OTEL_SERVICE_NAME: 'other' }, log);
    for (let n = 0; n < 64; n++) {
      const subject = crypto.randomUUID();
      door.tracer.record(span('claim', true, subject));
      bridge.tracer.record(span('bridge', false, subject));
    }
    await Promise.all([door.stop(), bridge.stop()]);
    const tracesOf = (service: string) =>
      collector.spans
        .filter((one) => one.service === service)
        .map(({ traceId }) => traceId)
        .sort();
    assert.deepEqual(tracesOf('door'), tracesOf('other'));
    const kept = tracesOf('door').length;
    assert.ok(kept > 0 && kept < 64, `${kept} of 64 kept`);
  });

  it('tells what failed', async (t) => {
    const collector = await startCollector();
    t.after(() => collector.stop());
    const { tracer, stop } = await openTracing('test', { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }, log);
    tracer.record({ ...span('bridge'), failure: 'ledger unavailable' });
    await stop();
    const [one] = collector.spans;
    assert.deepEqual([one?.traceId, one?.status], [TRACE, { code: 2, message: 'ledger unavailable' }]);
  });

  for (const [endpoint, isLoaded] of [
    ['', false],
    ['http://127.0.0.1:9', true],
  ] as const)
    it(`${isLoaded ? 'loads' : 'loads nothing of'} OpenTelemetry ${isLoaded ? 'with' : 'without'} an endpoint`, async () => {
      const loaded = await modulesLoadedWith(endpoint);
      assert.ok(
        loaded.some((url) => url.endsWith('/src/server/server.ts')),
        'the hook sees what is loaded',
      );
      assert.equal(
        loaded.some((url) => url.includes('@opentelemetry')),
        isLoaded,
      );
    });
});

describe('without the optional packages', () => {
  it('tracing that is asked for does not start, and says what to install', async () => {
    const missing = `export async function resolve(specifier, context, next) {
      if (specifier.startsWith('@opentelemetry/'))
        throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
      return next(specifier, context);
    }`;
    const program = `import { register } from 'node:module';
      register('data:text/javascript,' + encodeURIComponent(process.env.HOOK));
      const { openTracing } = await import(process.env.SRC + '/tracing/tracing.ts');
      await openTracing('test', process.env, console).catch(({ message, hint }) => console.log(message + '|' + hint));`;
    const [said = ''] = await runHooked(missing, program, 'http://127.0.0.1:9');
    assert.match(
      said,
      /^OTEL_EXPORTER_OTLP_ENDPOINT asks for traces, .* not installed\|run `npm install @opentelemetry\/api @/,
    );
  });
});

const HOOK = `export async function resolve(specifier, context, next) {
  const found = await next(specifier, context);
  process.stdout.write(found.url + '\\n');
  return found;
}`;
/** All that serve, work and dev are made of, and the tracing that they open. */
const PROGRAM = `import { register } from 'node:module';
register('data:text/javascript,' + encodeURIComponent(process.env.HOOK));
for (const name of ['serve', 'work', 'dev']) await import(process.env.SRC + '/commands/' + name + '.ts');
const { openTracing } = await import(process.env.SRC + '/tracing/tracing.ts');
await (await openTracing('test', process.env, console)).stop();`;

const modulesLoadedWith = (endpoint: string) => runHooked(HOOK, PROGRAM, endpoint);

/** The lines that `program` prints while `hook` watches what it imports. */
function runHooked(hook: string, program: string, endpoint: string): Promise<string[]> {
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', program], {
    cwd: PROJECT,
    env: {
      PATH: process.env.PATH ?? '',
      HOOK: hook,
      SRC: join(PROJECT, 'src'),
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  return new Promise((resolve, reject) => {
    child.once('close', (code) =>
      code === 0 ? resolve(output.split('\n')) : reject(new Error(`ended with ${code}`)),
    );
  });
}
