// The pages: bundled from console/ when the server starts, kept in memory, compressed once.

import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { HttpError } from '#core/errors.ts';
import type { Log } from '#core/ports.ts';
import type { HttpRequest, HttpResponse, Route } from '#core/router.ts';
import { CONSOLE_PATHS } from '../../console/paths.ts';
import { PROJECT_ROOT } from '../project_root.ts';
import { type Html, htmlOf, scripted } from './html.ts';

/** A file as it is sent. Compressed forms only where they are smaller. */
export interface PageFile {
  readonly type: string;
  readonly plain: Uint8Array;
  readonly gzip?: Uint8Array;
  readonly br?: Uint8Array;
}

export interface Pages {
  readonly console: PageFile;
  readonly drop: PageFile;
  /** By the name in the path: /assets/<name>. */
  readonly files: ReadonlyMap<string, PageFile>;
}

const SOURCES = join(PROJECT_ROOT, 'console');
const ENTRIES = { console: 'main.tsx', drop: 'drop.tsx' } as const;
type Page = keyof typeof ENTRIES;
/** The page's style and script come at the end of its head. */
const HTML: Readonly<Record<Page, Html>> = {
  console: { title: 'Sluice console', body: scripted('The console needs JavaScript.') },
  drop: {
    title: 'Drop',
    viewport: 'viewport-fit=cover',
    head: ['<meta name="robots" content="noindex" />'],
    body: scripted('This page needs JavaScript: it asks for your ticket and keeps it for you.'),
  },
};

const TYPES: Record<string, string> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  woff2: 'font/woff2',
  html: 'text/html; charset=utf-8',
};

/** A level above costs ten times the time for a hundredth of the size. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };
const toGzip = promisify(gzip);
const toBrotli = promisify(brotliCompress);

async function pageFile(extension: string, plain: Uint8Array): Promise<PageFile> {
  const [zipped, brotli] = await Promise.all([toGzip(plain), toBrotli(plain, BROTLI)]);
  return {
    type: TYPES[extension] ?? 'application/octet-stream',
    plain,
    ...(zipped.length < plain.length && { gzip: zipped }),
    ...(brotli.length < plain.length && { br: brotli }),
  };
}

async function build(sources: string): Promise<Pages> {
  const esbuild = await import('esbuild');
  try {
    const { outputFiles, metafile } = await esbuild.build({
      absWorkingDir: sources,
      entryPoints: Object.entries(ENTRIES).map(([out, file]) => ({ in: join(sources, file), out })),
      outdir: join(sources, 'assets'),
      entryNames: '[name]-[hash]',
      assetNames: '[name]-[hash]',
      publicPath: '/assets',
      bundle: true,
      minify: true,
      write: false,
      metafile: true,
      format: 'esm',
      target: 'es2022',
      jsx: 'automatic',
      jsxImportSource: 'preact',
      loader: { '.svg': 'file', '.woff2': 'file' },
      legalComments: 'none',
      logLevel: 'silent',
    });
    const files = new Map<string, PageFile>();
    for (const { path, contents } of outputFiles) {
      const name = basename(path);
      files.set(name, await pageFile(name.slice(name.lastIndexOf('.') + 1), contents));
    }
    const outputs = Object.entries(metafile.outputs);
    const html = (page: Page): Promise<PageFile> => {
      const [script, output] = outputs.find(([, { entryPoint }]) => entryPoint === ENTRIES[page]) ?? [];
      const tags = [
        output?.cssBundle && `<link rel="stylesheet" href="/assets/${basename(output.cssBundle)}" />`,
        script && `<script type="module" src="/assets/${basename(script)}"></script>`,
      ];
      const head = [...(HTML[page].head ?? []), ...tags.filter((tag) => tag !== undefined)];
      return pageFile('html', Buffer.from(htmlOf({ ...HTML[page], head })));
    };
    return { console: await html('console'), drop: await html('drop'), files };
  } finally {
    // It is a process of its own, which nobody needs once the pages are made.
    await esbuild.stop();
  }
}

let built: Promise<Pages> | undefined;

/** Once a process, whoever asks; other sources than the project's own are built for each call. */
export function buildPages(sources?: string): Promise<Pages> {
  if (sources !== undefined) return build(sources);
  built ??= build(SOURCES);
  return built;
}

export const SECURITY: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};
const PAGE_CACHE = 'no-cache';
const FILE_CACHE = 'public, max-age=31536000, immutable';

/** The server stands whether or not the pages can be built: claims need none. */
export function pageRoutes(pages: Promise<Pages>, log: Log): Route[] {
  pages.catch((error: unknown) => log.error('the pages cannot be built', { cause: error }));
  const page = (path: string, name: Page): Route => ({
    method: 'GET',
    path,
    handle: async (request) => send(request, (await pages)[name], PAGE_CACHE),
  });
  const icon = pageFile('svg', readFileSync(join(SOURCES, 'icon.svg')));
  return [
    // Browsers ask for it whatever a page says.
    { method: 'GET', path: '/favicon.ico', handle: async (request) => send(request, await icon, PAGE_CACHE) },
    ...CONSOLE_PATHS.map((path) => page(path, 'console')),
    page('/drop/:pool', 'drop'),
    {
      method: 'GET',
      path: '/assets/:file',
      async handle(request, name) {
        const file = (await pages).files.get(name);
        if (file === undefined) throw new HttpError('not_found');
        return send(request, file, FILE_CACHE);
      },
    },
  ];
}

function send(request: HttpRequest, file: PageFile, cache: string): HttpResponse {
  const encoding = (['br', 'gzip'] as const).find((name) => file[name] !== undefined && takes(request, name));
  return {
    status: 200,
    headers: {
      ...SECURITY,
      'content-type': file.type,
      'cache-control': cache,
      vary: 'accept-encoding',
      ...(encoding && { 'content-encoding': encoding }),
    },
    body: (encoding && file[encoding]) ?? file.plain,
  };
}

function takes({ headers }: HttpRequest, encoding: string): boolean {
  const accepted = String(headers['accept-encoding'] ?? '').split(',');
  return accepted.some((item) => {
    const [name, ...parameters] = item.split(';').map((part) => part.trim());
    return name === encoding && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}
