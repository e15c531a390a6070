import { posix } from 'node:path';
import type { Finding, Project, SourceFile } from './project.ts';
import { CORE, importsOf } from './ts_rules.ts';

const CORE_ALIAS = '#core/';
/** It names the files that it begins with by their paths. */
const BUILD = 'tools/build.js';

/**
 * A source file that nothing reaches. Everything outside src/ and the core (functions, tests, benchmarks), and what the build
 * begins with, is a root; from there imports are followed, so two dead files that import each other are found too.
 */
export function deadTypeScript(project: Project): Finding[] {
  const sources = new Map(
    project.files.filter((file) => /\.(ts|js)$/.test(file.path)).map((file) => [file.path, file]),
  );
  const build = sources.get(BUILD)?.text ?? '';
  const mayDie = (path: string): boolean =>
    (path.startsWith('src/') || path.startsWith(CORE)) && !build.includes(`'${path}'`);
  const reached = new Set<string>();
  const queue = [...sources.values()].filter((file) => !mayDie(file.path));
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    if (reached.has(file.path)) continue;
    reached.add(file.path);
    for (const { specifier } of importsOf(file)) {
      const target = sources.get(resolveImport(file.path, specifier));
      if (target !== undefined) queue.push(target);
    }
  }
  return [...sources.keys()]
    .filter((path) => !reached.has(path))
    .map((path) => ({ file: path, line: 1, rule: 'dead-file', message: 'nothing imports this file' }));
}

/** A .sql file under src/ that no source names, neither itself nor its folder. */
export function deadSql(project: Project): Finding[] {
  const sources = project.files.filter(
    (file) => /\.(ts|control)$/.test(file.path) && file.path.startsWith('src/'),
  );
  return project.files
    .filter((file) => file.path.startsWith('src/') && file.path.endsWith('.sql'))
    .filter((file) => !sources.some((source) => names(source, file)))
    .map((file) => ({ file: file.path, line: 1, rule: 'dead-file', message: 'nothing reads this file' }));
}

function names(source: SourceFile, sql: SourceFile): boolean {
  const folder = posix.basename(posix.dirname(sql.path));
  const ownName = source.text.includes(posix.basename(sql.path));
  return ownName || new RegExp(`['"\`/]${folder}/?['"\`]`).test(source.text);
}

function resolveImport(importer: string, specifier: string): string {
  if (specifier.startsWith(CORE_ALIAS)) return CORE + specifier.slice(CORE_ALIAS.length);
  return posix.join(posix.dirname(importer), specifier);
}
