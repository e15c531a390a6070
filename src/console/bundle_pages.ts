// The pages out of their sources. A build runs this once and keeps what comes out; a server that runs from the sources does
// it when it starts.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { type Html, htmlOf, scripted } from './html.ts';

export interface PageContents {
  /** What has a path of its own: console.html, drop.html and icon.svg; or docs.html. */
  readonly pages: ReadonlyMap<string, Uint8Array>;
  /** By the name in the path: /assets/<name>. */
  readonly assets: ReadonlyMap<string, Uint8Array>;
}

/** A ticket's page is drawn by the server: it has a style and no script. */
const ENTRIES = { console: 'main.tsx', drop: 'drop.tsx', ticket: 'ticket.css' };
const DOCS_ENTRIES = { docs: 'docs.ts' };
const DOCS_RENDERER = 'swagger-ui-dist';
type Page = 'console' | 'drop' | 'docs';
/** The page's style and script come at the end of its head. */
const HTML: Readonly<Record<Page, Html>> = {
  console: { title: 'Sluice console', body: scripted('The console needs JavaScript.') },
  drop: {
    title: 'Drop',
    viewport: 'viewport-fit=cover',
    head: ['<meta name="robots" content="noindex" />'],
    body: scripted('This page needs JavaScript: it asks for your ticket and keeps it for you.'),
  },
  docs: {
    title: 'Sluice API',
    body: scripted('This page needs JavaScript; <a href="/openapi.json">/openapi.json</a> says the same.'),
  },
};
const ICON = 'icon.svg';

export async function bundlePages(sources: string): Promise<PageContents> {
  const { pages, assets } = await bundle(sources, ENTRIES, ['console', 'drop']);
  return { pages: new Map([[ICON, readFileSync(join(sources, ICON))], ...pages]), assets };
}

/** The page of the API. Undefined where its renderer, a package for development, is not installed. */
export async function bundleDocs(sources: string): Promise<PageContents | undefined> {
  try {
    createRequire(join(sources, 'docs.ts')).resolve(`${DOCS_RENDERER}/package.json`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return undefined;
    throw error;
  }
  return bundle(sources, DOCS_ENTRIES, ['docs']);
}

async function bundle(
  sources: string,
  entries: Readonly<Record<string, string>>,
  drawn: readonly Page[],
): Promise<PageContents> {
  const esbuild = await import('esbuild');
  try {
    const { outputFiles, metafile } = await esbuild.build({
      absWorkingDir: sources,
      entryPoints: Object.entries(entries).map(([out, file]) => ({ in: join(sources, file), out })),
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
    const pages = new Map<string, Uint8Array>();
    for (const page of drawn) {
      const entry = entries[page];
      const built = Object.entries(metafile.outputs).find(([, { entryPoint }]) => entryPoint === entry);
      const [script, output] = built ?? [];
      const tags = [
        output?.cssBundle && `<link rel="stylesheet" href="/assets/${basename(output.cssBundle)}" />`,
        script && `<script type="module" src="/assets/${basename(script)}"></script>`,
      ];
      const head = [...(HTML[page].head ?? []), ...tags.filter((tag) => tag !== undefined)];
      pages.set(`${page}.html`, Buffer.from(htmlOf({ ...HTML[page], head })));
    }
    return { pages, assets: new Map(outputFiles.map(({ path, contents }) => [basename(path), contents])) };
  } finally {
    // It is a process of its own, which has nothing left to do.
    await esbuild.stop();
  }
}
