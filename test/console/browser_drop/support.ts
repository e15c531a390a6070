// A real browser in front of a real server, and what the databases say behind its back.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type pg from 'pg';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { NO_METRICS } from '#core/ports.ts';
import { startCrew } from '../../../src/bridge/crew.ts';
import type { RunningServer, ServerOptions } from '../../../src/server/server.ts';
import { memoryLog } from '../../core/support.ts';
import { openClient, startTestServer } from '../../server/support.ts';
import { startDatabases, type TestDatabases } from '../../support/databases.ts';
import { PROJECT } from '../../support/dev.ts';
import { CHROMIUM_ARGS } from '../chromium.ts';

export interface Shop {
  readonly url: string;
  readonly db1: pg.Client;
  readonly db2: pg.Client;
  readonly browser: Browser;
  /** A person with a browser of their own; a phone unless told otherwise. */
  visit(options?: Parameters<Browser['newContext']>[0]): Promise<BrowserContext>;
  /** Carries claims to the ledger until the returned function is called. */
  openBridge(): () => Promise<void>;
  claims(
    pool: string,
  ): Promise<{ claim_id: string; slot_id: string; user_id: string; state: string; verified: boolean }[]>;
  close(): Promise<void>;
}

const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, locale: 'en-GB' };
const PATIENCE_MS = 10_000;

export async function openShop(executablePath: string, more: Partial<ServerOptions> = {}): Promise<Shop> {
  const databases: TestDatabases = await startDatabases();
  let server: RunningServer | undefined;
  const open: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const end of open.reverse()) await end();
    await server?.stop();
    await databases.stop();
  };
  try {
    server = await startTestServer(databases, more);
    const { url } = server;
    const db1 = await openClient(databases.db1.url);
    open.push(() => db1.end());
    const db2 = await openClient(databases.db2.url);
    open.push(() => db2.end());
    const browser = await chromium.launch({ executablePath, args: CHROMIUM_ARGS });
    open.push(() => browser.close());
    return {
      url,
      db1,
      db2,
      browser,
      async visit(options = {}) {
        const context = await browser.newContext({ ...PHONE, ...options });
        context.setDefaultTimeout(PATIENCE_MS);
        return context;
      },
      openBridge() {
        const crew = startCrew({
          db1Url: databases.db1.url,
          db2Url: databases.db2.url,
          workers: 1,
          batchSize: 100,
          metrics: NO_METRICS,
          log: memoryLog(),
        });
        return () => crew.stop();
      },
      async claims(pool) {
        const { rows } = await db1.query(
          'select claim_id, slot_id, user_id, state, verified from public.claims where pool_id = $1',
          [pool],
        );
        return rows;
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Waits until the page shows this scene. */
export async function scene(page: Page, kind: string): Promise<void> {
  await page.waitForSelector(`main[data-scene="${kind}"]`);
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface AxeResults {
  violations: { id: string; help: string; nodes: { html: string }[] }[];
}

/** Everything axe knows, best practices included. `unfixable` are rules that a renderer of others breaks by how it builds its page. */
export async function assertAccessible(page: Page, unfixable: readonly string[] = []): Promise<void> {
  // A page that a slow machine still builds is judged when it has its heading.
  await page.locator('h1').first().waitFor({ state: 'attached' });
  // What fades in is judged when it is there. What the page took away meanwhile has ended too.
  await page.evaluate(
    'Promise.allSettled(document.getAnimations().filter((a) => a.effect.getComputedTiming().iterations === 1).map((a) => a.finished))',
  );
  // In the page's own world, but not by an inline script: the policy of the page would refuse that.
  await page.evaluate(axeSource);
  const { violations } = (await page.evaluate('axe.run(document)')) as AxeResults;
  assert.deepEqual(
    violations
      .filter(({ id }) => !unfixable.includes(id))
      .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(' ')}`),
    [],
  );
}

/** Nothing is wider than the screen. */
export async function assertFits(page: Page): Promise<void> {
  const [width, room] = (await page.evaluate(
    '[document.documentElement.scrollWidth, document.documentElement.clientWidth]',
  )) as [number, number];
  assert(width <= room, `${width} pixels in ${room} at ${page.url()}`);
}

/** For the documents, when they are asked for. */
export async function picture(page: Page, name: string): Promise<void> {
  if (process.env.SLUICE_PICTURES !== '1') return;
  const folder = join(PROJECT, 'docs', 'pictures');
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), animations: 'disabled', scale: 'css' });
}

/**
 * Holds back what a page asks for at these addresses until the result is called: what it shows meanwhile stays for as long
 * as it takes to look.
 */
export async function hold(page: Page, addresses: string): Promise<() => void> {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  await page.route(addresses, async (route) => {
    await opened;
    await route.continue();
  });
  return open;
}
