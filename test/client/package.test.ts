// The client as its users get it: packed, put into an empty folder, and run there on Node, on Deno and in a browser.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { chromium } from 'playwright-core';
import { SERVER_CODES } from '#client/error.ts';
import type { ErrorCode } from '#core/errors.ts';
import { BUYER_DESCRIPTIONS } from '#core/openapi/buyers.ts';
import { findDeno } from '../../src/stack/functions.ts';
import { CHROMIUM_ARGS, ensureChromium } from '../console/chromium.ts';
import { runCommand } from '../run/command.ts';
import { openClient, putOnSale, startTestServer } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { PROJECT } from '../support/dev.ts';

const MAX_BYTES = 11 * 1024;

/** What a user writes. It does not compile where status or code is any text. */
const program = (
  url: string,
  user: string,
): string => `import { type Claim, createRequest, createSluiceClient, type OwnClaim, SluiceError } from 'sluice-client';
const sluice = createSluiceClient({ url: '${url}', maxTries: 2 });
const order = { pool: 'packed', userId: '${user}', ...createRequest() };
const claim: OwnClaim = await sluice.claim(order);
const again: Claim = await sluice.claim(order);
const isWaiting: boolean = claim.status === 'queued';
const seen: Claim = await sluice.getClaim(claim);
const released: Claim = await sluice.release({ claim_id: claim.claim_id, secret: claim.secret });
const solved: OwnClaim = await sluice.claim({ pool: 'puzzle', userId: '${user}' });
const refused = await sluice.claim({ pool: 'nowhere', userId: '${user}' }).catch((error: unknown) => error);
const code = refused instanceof SluiceError && refused.code === 'unknown_pool' ? refused.code : String(refused);
const isSame: boolean = claim.claim_id === again.claim_id && seen.user_id === solved.user_id;
console.log(isSame, isWaiting, released.status, code);
`;
const PRINTED = 'true true released unknown_pool';

const withoutTypes = (text: string): string =>
  text.replace(/: (boolean|unknown|Claim|OwnClaim)\b/g, '').replace(/\btype \w+,? /g, '');

describe('the packed client', () => {
  let databases: TestDatabases;
  let server: Awaited<ReturnType<typeof startTestServer>>;
  let folder: string;
  let app: string;
  let archive: string;

  before(async () => {
    databases = await startDatabases();
    server = await startTestServer(databases);
    const db1 = await openClient(databases.db1.url);
    await putOnSale(db1, 'packed', 10);
    await putOnSale(db1, 'puzzle', 10, { challenge_difficulty: 5_000 });
    await db1.end();
    folder = mkdtempSync(join(tmpdir(), 'sluice-client-'));
    const packed = await runCommand('npm', ['pack', '--pack-destination', folder], {
      cwd: join(PROJECT, 'packages', 'client'),
    });
    assert.equal(packed.code, 0, packed.output);
    archive = join(folder, readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? '');
    app = join(folder, 'app');
    mkdirSync(app);
    writeFileSync(join(app, 'package.json'), '{ "name": "app", "private": true, "type": "module" }\n');
    const installed = await runCommand('npm', ['install', '--offline', archive], { cwd: app });
    assert.equal(installed.code, 0, installed.output);
  });
  after(async () => {
    rmSync(folder, { recursive: true, force: true });
    await server.stop();
    await databases.stop();
  });

  it('is under 11 KB, depends on nothing and brings nothing but itself', () => {
    assert.ok(statSync(archive).size < MAX_BYTES, `${statSync(archive).size} bytes`);
    const root = join(app, 'node_modules', 'sluice-client');
    const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    assert.deepEqual([dependencies, peerDependencies], [undefined, undefined]);
    assert.deepEqual(
      readdirSync(join(app, 'node_modules')).filter((name) => !name.startsWith('.')),
      ['sluice-client'],
    );
    assert.doesNotMatch(readFileSync(join(root, 'dist', 'index.js'), 'utf8'), /\bfrom\s*["']|require\(/);
  });

  it('claims on Node', async () => {
    writeFileSync(join(app, 'on_node.js'), withoutTypes(program(server.url, 'node')));
    const { code, output } = await runCommand(process.execPath, ['on_node.js'], { cwd: app });
    assert.deepEqual([code, output.trim()], [0, PRINTED], output);
  });

  it('claims on Deno, which checks its types first', async (t) => {
    const deno = findDeno();
    if (deno === undefined) return t.skip('Deno is not installed');
    writeFileSync(join(app, 'deno.json'), '{ "nodeModulesDir": "manual" }\n');
    writeFileSync(join(app, 'on_deno.ts'), program(server.url, 'deno'));
    const run = ['run', '--check', '--no-remote', '--allow-net=127.0.0.1', 'on_deno.ts'];
    const { code, output } = await runCommand(deno, run, { cwd: app });
    assert.equal(code, 0, output);
    assert.ok(output.split('\n').includes(PRINTED), output);
    // The control: a status that no claim has does not compile.
    writeFileSync(join(app, 'on_deno.ts'), program(server.url, 'deno').replace("'queued'", "'que'"));
    const wrong = await runCommand(deno, ['check', '--no-remote', 'on_deno.ts'], { cwd: app });
    assert.notEqual(wrong.code, 0, 'a status that does not exist compiles');
  });

  it('claims in a browser', async (t) => {
    const found = await ensureChromium();
    if ('missing' in found) return t.skip(found.missing);
    const browser = await chromium.launch({ executablePath: found.path, args: CHROMIUM_ARGS });
    try {
      const page = await browser.newPage();
      const body = readFileSync(join(app, 'node_modules', 'sluice-client', 'dist', 'index.js'), 'utf8');
      await page.route('**/sluice-client.js', (route) =>
        route.fulfill({ contentType: 'text/javascript', body }),
      );
      await page.goto(`${server.url}/drop/packed`);
      const seen = await page.evaluate(async (url) => {
        const { createSluiceClient } = await import(`${url}/sluice-client.js`);
        const sluice = createSluiceClient({ url });
        const [plain, solved] = [
          await sluice.claim({ pool: 'packed', userId: 'browser' }),
          await sluice.claim({ pool: 'puzzle', userId: 'browser' }),
        ];
        return [plain.status, solved.status, (await sluice.release(plain)).status];
      }, server.url);
      assert.deepEqual(seen, ['queued', 'queued', 'released']);
    } finally {
      await browser.close();
    }
  });
});

describe('the codes of the client', () => {
  it('are all that the buyers’ routes are described with', () => {
    const described = Object.entries(BUYER_DESCRIPTIONS)
      .filter(([route]) => route.includes('/v1/'))
      .flatMap(([, { errors = [] }]) => errors);
    // Does not compile where the server has no such code.
    const sent: readonly ErrorCode[] = SERVER_CODES;
    assert.deepEqual(
      described.filter((code) => !sent.includes(code)),
      [],
    );
  });
});
