// The real browser of the browser tests: the one that is there, or Debian's, installed where that is allowed.

import { existsSync } from 'node:fs';
import { ensureDebianPackages } from '../pgtap/debian_packages.ts';

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** Chromium has no sandbox as root, the user of containers; it opens only our pages. It calls no host of its own accord. */
export const CHROMIUM_ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Where it is, or why there is none. CHROMIUM_BIN names another. */
export async function ensureChromium(): Promise<{ path: string } | { missing: string }> {
  const found = findChromium();
  if (found !== undefined) return { path: found };
  // The fonts come along: without any, pages have no text to measure.
  const missing = await ensureDebianPackages(['chromium', 'fonts-dejavu-core', 'fonts-liberation']);
  const path = findChromium();
  return path === undefined ? { missing: missing ?? 'no Chromium was found' } : { path };
}

function findChromium(): string | undefined {
  const { CHROMIUM_BIN } = process.env;
  return [...(CHROMIUM_BIN ? [CHROMIUM_BIN] : []), ...PLACES].find((path) => existsSync(path));
}
