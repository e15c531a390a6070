import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { type HttpRequest, Router } from '#core/router.ts';
import { CONSOLE_PATHS } from '../../console/paths.ts';
import { loadPages, pageRoutes } from '../../src/console/assets.ts';
import { HttpServer } from '../../src/server/http.ts';
import { memoryLog } from '../core/support.ts';
import { ask, assertRefusal } from '../server/support.ts';

/** A page with all that it loads, as it goes over the wire to a browser that takes no compression at all. */
const MAX_PAGE_BYTES = 300_000;

async function listen(pages: ReturnType<typeof loadPages>) {
  const log = memoryLog();
  const server = new HttpServer(new Router(pageRoutes(pages, log), log), log);
  const port = await server.listen(0);
  return { server, log, url: `http://127.0.0.1:${port}` };
}

const assetsOf = (html: string) =>
  [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path);

describe('the pages', () => {
  let site: Awaited<ReturnType<typeof listen>>;
  before(async () => {
    site = await listen(loadPages());
  });
  after(() => site.server.close());

  for (const path of [...CONSOLE_PATHS.map((place) => place.replace(/:\w+/, 'x-1')), '/drop/p']) {
    it(`answers ${path} with a page that loads nothing but its own files, and runs nothing inline`, async () => {
      const { status, headers, text } = await ask(site.url + path);
      assert.equal(status, 200);
      assert.equal(headers['content-type'], 'text/html; charset=utf-8');
      assert.equal(headers['cache-control'], 'no-cache');
      assert.match(String(headers['content-security-policy']), /^default-src 'self';/);
      assert.doesNotMatch(String(headers['content-security-policy']), /unsafe|\*/);
      assert.doesNotMatch(text, /<script(?![^>]*\bsrc=)|<style|\son\w+=|<!-- assets -->/);
      assert(assetsOf(text).length >= 2, text);
    });
  }

  it('keep windows of other sites out, and tell browsers to stay with https where they came by it', async (t) => {
    const log = memoryLog();
    const isHttps = ({ headers }: HttpRequest) => headers['x-forwarded-proto'] === 'https';
    const server = new HttpServer(new Router(pageRoutes(loadPages(), log, isHttps), log), log);
    const url = `http://127.0.0.1:${await server.listen(0)}`;
    t.after(() => server.close());
    for (const path of ['/', '/drop/p']) {
      const plain = await ask(url + path);
      assert.equal(plain.headers['cross-origin-opener-policy'], 'same-origin');
      assert.equal(plain.headers['strict-transport-security'], undefined);
      const secure = await ask(url + path, { headers: { 'x-forwarded-proto': 'https' } });
      assert.equal(secure.headers['strict-transport-security'], 'max-age=31536000');
    }
  });

  for (const path of ['/', '/drop/p']) {
    it(`keeps ${path} below 300 KB in all, each file under a name of its content and for ever`, async () => {
      const page = await ask(site.url + path);
      let bytes = page.text.length;
      for (const asset of assetsOf(page.text)) {
        assert.match(String(asset), /^\/assets\/[a-z]+-[A-Z0-9]{8}\.(js|css)$/);
        const { status, headers, text } = await ask(site.url + asset);
        assert.equal(status, 200);
        assert.equal(headers['cache-control'], 'public, max-age=31536000, immutable');
        assert.equal(headers['x-content-type-options'], 'nosniff');
        bytes += Buffer.byteLength(text);
      }
      assert(bytes < MAX_PAGE_BYTES, `${bytes} bytes`);
    });
  }

  it('sends what was compressed to who takes it, and the same bytes to all', async () => {
    const [script] = assetsOf((await ask(`${site.url}/`)).text).filter((path) => path?.endsWith('.js'));
    const fetchRaw = async (encoding: string) => {
      const response = await fetch(site.url + script, { headers: { 'accept-encoding': encoding } });
      return { encoding: response.headers.get('content-encoding'), vary: response.headers.get('vary') };
    };
    assert.deepEqual(await fetchRaw('gzip, deflate, br'), { encoding: 'br', vary: 'accept-encoding' });
    assert.deepEqual(await fetchRaw('gzip'), { encoding: 'gzip', vary: 'accept-encoding' });
    assert.deepEqual(await fetchRaw('br;q=0, gzip'), { encoding: 'gzip', vary: 'accept-encoding' });
    assert.deepEqual(await fetchRaw('identity'), { encoding: null, vary: 'accept-encoding' });
    const { files } = await loadPages();
    for (const { plain, gzip, br } of files.values()) {
      if (gzip) assert.deepEqual(gunzipSync(gzip), Buffer.from(plain));
      if (br) assert.deepEqual(brotliDecompressSync(br), Buffer.from(plain));
    }
  });

  it('answers /docs with a page of the API that loads nothing but its own files, and runs nothing inline', async () => {
    const { status, headers, text } = await ask(`${site.url}/docs`);
    assert.equal(status, 200);
    assert.equal(headers['content-type'], 'text/html; charset=utf-8');
    const policy = String(headers['content-security-policy']);
    assert.match(policy, /^default-src 'self';.*; img-src 'self' data:$/);
    assert.doesNotMatch(policy, /unsafe|\*|http/);
    assert.doesNotMatch(text, /<script(?![^>]*\bsrc=)|<style|\son\w+=|style=/);
    const assets = assetsOf(text);
    assert.deepEqual(assets.map((path) => path?.replace(/-[A-Z0-9]{8}/, '')).toSorted(), [
      '/assets/docs.css',
      '/assets/docs.js',
    ]);
    for (const asset of assets) {
      const file = await ask(site.url + asset);
      assert.equal(file.status, 200);
      assert.equal(file.headers['cache-control'], 'public, max-age=31536000, immutable');
    }
    assertRefusal(await ask(`${site.url}/assets/docs-NOTHERE0.js`), 404, 'not_found');
  });

  it('says where the description is when the page of the API was not built', async (t) => {
    const pages = loadPages().then((all) => ({ ...all, docs: async () => undefined }));
    const { server, url } = await listen(pages);
    t.after(() => server.close());
    const answer = await ask(`${url}/docs`);
    assertRefusal(answer, 404, 'not_found');
    assert.match(answer.json.error.hint, /GET \/openapi\.json/);
  });

  it('has no file that was not built', async () => {
    for (const name of ['console.js', 'main.tsx', '..', 'package.json'])
      assertRefusal(await ask(`${site.url}/assets/${name}`), 404, 'not_found');
  });
});

describe('pages that cannot be built', () => {
  it('are refused, with the reason in the log, and nothing else is', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'sluice-pages-'));
    writeFileSync(join(dir, 'main.tsx'), 'this does not compile');
    const { server, url, log } = await listen(loadPages(dir));
    try {
      assertRefusal(await ask(`${url}/`), 500, 'internal');
      assert.equal(log.lines.find((line) => line.level === 'error')?.message, 'the pages cannot be loaded');
    } finally {
      await server.close();
      rmSync(dir, { recursive: true });
    }
  });
});
