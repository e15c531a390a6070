// The pages out of their sources. A build runs this once and keeps what comes out; a server that runs from the sources does
// it when it starts.

import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

export interface PageContents {
  /** What has a path of its own: console.html, drop.html and icon.svg. */
  readonly pages: ReadonlyMap<string, Uint8Array>;
  /** By the name in the path: /assets/<name>. */
  readonly assets: ReadonlyMap<string, Uint8Array>;
}

/** Each page has an entry, and a file of HTML in which its script and its style take the place of the mark. */
const ENTRIES = { console: 'main.tsx', drop: 'drop.tsx' } as const;
const MARK = '<!-- assets -->';
const ICON = 'icon.svg';

export async function bundlePages(sources: string): Promise<PageContents> {
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
    const pages = new Map<string, Uint8Array>([[ICON, readFileSync(join(sources, ICON))]]);
    for (const [page, entry] of Object.entries(ENTRIES)) {
      const built = Object.entries(metafile.outputs).find(([, { entryPoint }]) => entryPoint === entry);
      const [script, output] = built ?? [];
      const tags = [
        output?.cssBundle && `<link rel="stylesheet" href="/assets/${basename(output.cssBundle)}" />`,
        script && `<script type="module" src="/assets/${basename(script)}"></script>`,
      ];
      const text = readFileSync(join(sources, `${page}.html`), 'utf8');
      pages.set(`${page}.html`, Buffer.from(text.replace(MARK, tags.filter(Boolean).join('\n    '))));
    }
    return { pages, assets: new Map(outputFiles.map(({ path, contents }) => [basename(path), contents])) };
  } finally {
    // It is a process of its own, which has nothing left to do.
    await esbuild.stop();
  }
}
