// A real browser in front of a real server, with a bridge, a ledger that can be stopped, a validation service that can be broken and
// secrets that can be lost.

import { mkdirSync, mkdtempSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { NO_METRICS } from '#core/ports.ts';
import { startCrew } from '../../../src/bridge/crew.ts';
import { BreakerMarks, startBreakerMarks } from '../../../src/samples/breakers.ts';
import { startScheduler } from '../../../src/scheduler/scheduler.ts';
import { type ServerOptions, startServer } from '../../../src/server/server.ts';
import { startWebhookCrew } from '../../../src/webhook/crew.ts';
import { type Handlers, NO_HANDLERS } from '../../../src/webhook/handlers.ts';
import { startProxy } from '../../bridge/proxy.ts';
import { SECRETS as CALL_SECRETS } from '../../calls/support.ts';
import { memoryLog } from '../../core/support.ts';
import { ADMIN_KEY, JWT_SECRET, openClient } from '../../server/support.ts';
import { startDatabases } from '../../support/databases.ts';
import { PROJECT } from '../../support/dev.ts';
import { SECRETS as WEBHOOK_SECRETS } from '../../webhook/world.ts';
import { CHROMIUM_ARGS } from '../chromium.ts';

const PATIENCE_MS = 15_000;

export const DESKTOP = { width: 1280, height: 860 };
export const PHONE = { width: 360, height: 740 };

export type ContextOptions = NonNullable<Parameters<Browser['newContext']>[0]>;

export interface House {
  readonly url: string;
  readonly db1: pg.Client;
  readonly db2Url: string;
  readonly browser: Browser;
  /** What the validation service of a pool answers with. */
  readonly validation: { readonly url: string; status: number };
  /** Names of secrets that the server does not find any more. */
  readonly lostSecrets: Set<string>;
  /** Webhook workers and the scheduler, beside the bridge that always runs; until the returned function is called. */
  startWorkers(handlers?: Handlers): () => Promise<void>;
  stopLedger(): Promise<void>;
  startLedger(): Promise<void>;
  stopServer(): Promise<void>;
  /** On the same port, as after a deployment. */
  startServer(): Promise<void>;
  /** A browser of its own, without a session. */
  visit(options?: ContextOptions): Promise<BrowserContext>;
  /** A page with a session, on the desktop unless told otherwise. */
  signIn(path: string, options?: ContextOptions, key?: string): Promise<Page>;
  close(): Promise<void>;
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as { port: number }).port}/`;
}

export async function openHouse(
  executablePath: string,
  options: Pick<ServerOptions, 'sampleClock'> = {},
): Promise<House> {
  process.env.SLUICE_LOG ??= 'silent';
  const ends: (() => unknown)[] = [];
  const close = async (): Promise<void> => {
    for (const end of ends.reverse()) await end();
  };
  try {
    const databases = await startDatabases();
    ends.push(() => databases.stop());
    let ledger = databases.db2;
    const proxy = await startProxy(databases.db2.url);
    ends.push(() => proxy.close());
    const validation = { url: '', status: 200 };
    const service = createServer((request, response) => {
      request.resume();
      response.writeHead(validation.status).end();
    });
    validation.url = await listen(service);
    ends.push(() => service.close());
    const db1 = await openClient(databases.db1.url);
    ends.push(() => db1.end());
    await db1.query(`select public.allow_hook_host('127.0.0.1', 'test')`);
    const urls = { db1Url: databases.db1.url, db2Url: proxy.url };
    const breakers = new BreakerMarks();
    const crew = startCrew({
      ...urls,
      workers: 1,
      batchSize: 100,
      metrics: breakers.watching(NO_METRICS),
      onOutage: breakers.explain,
      log: memoryLog(),
    });
    ends.push(() => crew.stop());
    const tellOf = (some: BreakerMarks) => startBreakerMarks(some, [urls.db1Url, urls.db2Url], memoryLog());
    const marks = tellOf(breakers);
    ends.push(() => marks.stop());
    const lostSecrets = new Set<string>();
    const secretOf = (name: string) =>
      lostSecrets.has(name) ? undefined : (WEBHOOK_SECRETS[name] ?? CALL_SECRETS[name]);
    const start = (port: number) =>
      startServer({ ...options, port, ...urls, adminKey: ADMIN_KEY, jwtSecret: JWT_SECRET, secretOf });
    let server = await start(0);
    ends.push(() => server.stop());
    const browser = await chromium.launch({ executablePath, args: CHROMIUM_ARGS });
    ends.push(() => browser.close());

    const visit = async (options: ContextOptions = {}): Promise<BrowserContext> => {
      const context = await browser.newContext({ viewport: DESKTOP, locale: 'en-GB', ...options });
      context.setDefaultTimeout(PATIENCE_MS);
      return context;
    };
    return {
      url: server.url,
      db1,
      db2Url: proxy.url,
      browser,
      validation,
      lostSecrets,
      startWorkers(handlers = NO_HANDLERS) {
        const log = memoryLog();
        // As in a process of their own.
        const own = new BreakerMarks();
        const ownMarks = tellOf(own);
        const webhooks = startWebhookCrew({
          db2Url: proxy.url,
          workers: 1,
          batchSize: 100,
          handlers,
          metrics: own.watching(NO_METRICS),
          log,
        });
        const scheduler = startScheduler({ db1Url: databases.db1.url, log });
        return async () => {
          await Promise.all([webhooks.stop(), scheduler.stop(), ownMarks.stop()]);
        };
      },
      stopLedger: () => ledger.stop('immediate'),
      async startLedger() {
        ledger = await ledger.restart();
        proxy.retarget(ledger.url);
      },
      stopServer: () => server.stop(),
      async startServer() {
        server = await start(server.port);
      },
      visit,
      async signIn(path, options, key = ADMIN_KEY) {
        const context = await visit(options);
        const headers = { 'x-sluice-csrf': '1' };
        await context.request.post(`${server.url}/admin/session`, { data: { key }, headers });
        const page = await context.newPage();
        await page.goto(`${server.url}${path}`);
        return page;
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

export interface Weight {
  /** Nothing has come yet. */
  reset(): void;
  bytes(): number;
  /** What each file took. */
  parts(): string;
}

/** What comes over the line, without a cache: a file as it was sent, compressed; of a stream what has come so far. */
export async function weigh(page: Page): Promise<Weight> {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Network.enable');
  await cdp.send('Network.setCacheDisabled', { cacheDisabled: true });
  const files = new Map<string, { url: string; bytes: number }>();
  cdp.on('Network.requestWillBeSent', ({ requestId, request: { url } }) =>
    files.set(requestId, { url, bytes: 0 }),
  );
  cdp.on('Network.dataReceived', ({ requestId, dataLength }) => {
    const file = files.get(requestId);
    if (file !== undefined) file.bytes += dataLength;
  });
  // Only the end of a file tells what was sent: until then the browser counts what it has unpacked.
  cdp.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    const file = files.get(requestId);
    if (file !== undefined) file.bytes = encodedDataLength;
  });
  return {
    reset: () => files.clear(),
    bytes: () => [...files.values()].reduce((sum, { bytes }) => sum + bytes, 0),
    parts: () => [...files.values()].map(({ url, bytes }) => `${bytes} ${url}`).join('\n'),
  };
}

export const isForDocuments = process.env.SLUICE_PICTURES === '1';
let folder: string | undefined;

/** Saves into docs/pictures when SLUICE_PICTURES is 1, else into a temporary folder. */
export async function picture(page: Page, name: string): Promise<void> {
  folder ??= isForDocuments
    ? join(PROJECT, 'docs', 'pictures')
    : mkdtempSync(join(tmpdir(), 'sluice-pictures-'));
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `console-${name}.png`), animations: 'disabled' });
}
