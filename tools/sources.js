// Which build belongs to the sources of this checkout. A build is named after the contents of all that it is made from, so
// a fresh clone, a checkout of another branch and a copy of the tree find theirs, or find that it has to be made. Plain
// JavaScript: each `sluice` of a checkout comes through here, before anything is built.

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
export const DIST = join(ROOT, 'dist');

/** The folders that a build is made from; package.json pins the packages that end up inside the pages. */
const FOLDERS = ['src', 'console', 'db1/supabase/functions/_shared', 'packages/client/src'];
const FILES = ['package.json', 'tsconfig.json', 'tools/build.js', 'tools/sources.js'];
/** Names the build that runs. An installed package has no sources to ask. */
const CURRENT = join(DIST, 'current');
/** What `sluice/handlers` is. */
const HANDLERS = join(DIST, 'handlers.js');
/** The build, and how the sources looked when their contents were last read: while they look the same, they are. */
const SEEN = join(DIST, 'seen');

const HASH_CHARS = 20;

export const entryOf = (build) => join(DIST, build, 'cli.js');

/** The build that belongs to the sources, if it is there. */
export function findBuild() {
  const look = lookAt(sourceFiles());
  const [build = '', seen] = splitOnce(readIfThere(SEEN));
  if (seen === look && existsSync(entryOf(build))) return build;
  const wanted = hashSources();
  if (!existsSync(entryOf(wanted))) return undefined;
  try {
    noteBuild(wanted, look);
  } catch {
    // Another user's checkout: its contents are read again next time.
  }
  return wanted;
}

/** What the sources hold, as the name of a build. */
export function hashSources() {
  const hash = createHash('sha256');
  for (const file of sourceFiles()) {
    const content = readFileSync(join(ROOT, file));
    hash.update(`${file}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex').slice(0, HASH_CHARS);
}

/** Makes `build` the one that runs. `look` was taken before the contents were read: what changed since then is seen. */
export function noteBuild(build, look) {
  replaceFile(HANDLERS, `export * from './${build}/handlers.js';\n`);
  replaceFile(CURRENT, build);
  replaceFile(SEEN, `${build}\n${look}`);
}

export const lookAtSources = () => lookAt(sourceFiles());

/** At any moment the old file or the new one is there, whole. */
function replaceFile(path, text) {
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, text);
  renameSync(draft, path);
}

function sourceFiles() {
  const files = [...FILES];
  const visit = (folder) => {
    for (const entry of readdirSync(join(ROOT, folder), { withFileTypes: true })) {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory()) visit(path);
      else if (!entry.name.endsWith('.md')) files.push(path);
    }
  };
  for (const folder of FOLDERS) visit(folder);
  return files.sort();
}

/** The time of the last change to the inode cannot be set by hand, unlike that of the content. */
function lookAt(files) {
  const lines = files.map((file) => {
    const { size, ino, mtimeMs, ctimeMs } = statSync(join(ROOT, file));
    return `${file} ${size} ${ino} ${mtimeMs} ${ctimeMs}`;
  });
  return lines.join('\n');
}

function readIfThere(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function splitOnce(text) {
  const at = text.indexOf('\n');
  return at === -1 ? [] : [text.slice(0, at), text.slice(at + 1)];
}
