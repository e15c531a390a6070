// The pages: read when the server starts, kept in memory, compressed once.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { HttpError } from '#core/errors.ts';
import type { Log } from '#core/ports.ts';
import type { HttpRequest, HttpResponse, Route } from '#core/router.ts';
import { CONSOLE_PATHS } from '../../console/paths.ts';
import { PROGRAM_ROOT, PROJECT_ROOT } from '../project_root.ts';
import type { PageContents } from './bundle_pages.ts';

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
  readonly icon: PageFile;
  /** The address of the style of tickets. */
  readonly ticketStyle: string;
  /** By the name in the path: /assets/<name>. */
  readonly files: ReadonlyMap<string, PageFile>;
  /** The page of the API, loaded when a browser first asks for it: it is larger than all others together. */
  docs(): Promise<DocsPage | undefined>;
}

export interface DocsPage {
  readonly page: PageFile;
  /** Their names begin with DOCS. */
  readonly files: ReadonlyMap<string, PageFile>;
}

const DOCS = 'docs-';

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

async function pageFile(name: string, plain: Uint8Array): Promise<PageFile> {
  const [zipped, brotli] = await Promise.all([toGzip(plain), toBrotli(plain, BROTLI)]);
  return {
    type: TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream',
    plain,
    ...(zipped.length < plain.length && { gzip: zipped }),
    ...(brotli.length < plain.length && { br: brotli }),
  };
}

const TICKET_STYLE = /^ticket-[A-Z0-9]+\.css$/;

/** A build has the pages beside the program. */
const BUILT = join(PROGRAM_ROOT, 'pages');

async function load(sources: string | undefined): Promise<Pages> {
  const { pages, assets } = await contents(sources);
  const files = await pageFiles(assets);
  let docs: Promise<DocsPage | undefined> | undefined;
  const page = (name: string) => pageFile(name, pages.get(name) ?? new Uint8Array());
  return {
    console: await page('console.html'),
    drop: await page('drop.html'),
    icon: await page('icon.svg'),
    ticketStyle: `/assets/${[...files.keys()].find((name) => TICKET_STYLE.test(name))}`,
    files,
    docs: () => {
      docs ??= loadDocs(sources);
      return docs;
    },
  };
}

async function pageFiles(contents: ReadonlyMap<string, Uint8Array>): Promise<Map<string, PageFile>> {
  const files = new Map<string, PageFile>();
  for (const [name, plain] of contents) files.set(name, await pageFile(name, plain));
  return files;
}

/** Undefined where it was not built, because its renderer was not installed. */
async function loadDocs(sources: string | undefined): Promise<DocsPage | undefined> {
  const built = await docsContents(sources);
  const plain = built?.pages.get('docs.html');
  if (built === undefined || plain === undefined) return undefined;
  return { page: await pageFile('docs.html', plain), files: await pageFiles(built.assets) };
}

async function docsContents(sources: string | undefined): Promise<PageContents | undefined> {
  if (sources === undefined && existsSync(BUILT)) {
    const folder = join(BUILT, 'docs');
    if (!existsSync(folder)) return undefined;
    return { pages: readFolder(folder), assets: readFolder(join(folder, 'assets')) };
  }
  const { bundleDocs } = await import('./bundle_pages.ts');
  return bundleDocs(sources ?? join(PROJECT_ROOT, 'console'));
}

async function contents(sources: string | undefined): Promise<PageContents> {
  if (sources === undefined && existsSync(BUILT))
    return { pages: readFolder(BUILT), assets: readFolder(join(BUILT, 'assets')) };
  const { bundlePages } = await import('./bundle_pages.ts');
  return bundlePages(sources ?? join(PROJECT_ROOT, 'console'));
}

function readFolder(folder: string): Map<string, Uint8Array> {
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(files.map(({ name }) => [name, readFileSync(join(folder, name))]));
}

let loaded: Promise<Pages> | undefined;

/** The pages of this program, once a process; other sources are bundled for each call. */
export function loadPages(sources?: string): Promise<Pages> {
  if (sources !== undefined) return load(sources);
  loaded ??= load(undefined);
  return loaded;
}

export const SECURITY: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};
/** The organiser's picture is wherever the organiser has put it. */
const DROP_SECURITY: Readonly<Record<string, string>> = {
  ...SECURITY,
  'content-security-policy': `${SECURITY['content-security-policy']}; img-src 'self' https:`,
};
/** Its style has its small pictures inside. */
const DOCS_SECURITY: Readonly<Record<string, string>> = {
  ...SECURITY,
  'content-security-policy': `${SECURITY['content-security-policy']}; img-src 'self' data:`,
};
const NO_DOCS =
  'This build has no page of the API: its renderer is a package for development. GET /openapi.json says the same.';
/** A year, as browsers recommend. Not for subdomains: they are not ours to speak for. */
export const HSTS: Readonly<Record<string, string>> = { 'strict-transport-security': 'max-age=31536000' };
const PAGE_CACHE = 'no-cache';
const FILE_CACHE = 'public, max-age=31536000, immutable';

/** The server stands whether or not there are pages: claims need none. Where `isHttps`, browsers are told to stay with it. */
export function pageRoutes(
  pages: Promise<Pages>,
  log: Log,
  isHttps: (request: HttpRequest) => boolean = () => false,
): Route[] {
  const send = (request: HttpRequest, file: PageFile, cache: string, security = SECURITY): HttpResponse => {
    const answer = fileResponse(request, file, cache, security);
    return isHttps(request) ? { ...answer, headers: { ...answer.headers, ...HSTS } } : answer;
  };
  pages.catch((error: unknown) => log.error('the pages cannot be loaded', { cause: error }));
  const page = (path: string, name: 'console' | 'drop' | 'icon'): Route => ({
    method: 'GET',
    path,
    handle: async (request) =>
      send(request, (await pages)[name], PAGE_CACHE, name === 'drop' ? DROP_SECURITY : SECURITY),
  });
  return [
    // Browsers ask for it whatever a page says.
    page('/favicon.ico', 'icon'),
    ...CONSOLE_PATHS.map((path) => page(path, 'console')),
    page('/drop/:pool', 'drop'),
    {
      method: 'GET',
      path: '/docs',
      async handle(request) {
        const docs = await (await pages).docs();
        if (docs === undefined) throw new HttpError('not_found', NO_DOCS);
        return send(request, docs.page, PAGE_CACHE, DOCS_SECURITY);
      },
    },
    {
      method: 'GET',
      path: '/assets/:file',
      async handle(request, name) {
        const { files, docs } = await pages;
        const file = name.startsWith(DOCS) ? (await docs())?.files.get(name) : files.get(name);
        if (file === undefined) throw new HttpError('not_found');
        return send(request, file, FILE_CACHE);
      },
    },
  ];
}

function fileResponse(
  request: HttpRequest,
  file: PageFile,
  cache: string,
  security: Readonly<Record<string, string>>,
): HttpResponse {
  const encoding = (['br', 'gzip'] as const).find((name) => file[name] !== undefined && takes(request, name));
  return {
    status: 200,
    headers: {
      ...security,
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
