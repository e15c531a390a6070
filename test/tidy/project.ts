import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';

/** One thing that is wrong, at one place. */
export type Finding = { file: string; line: number; rule: string; message: string };

/** A text file of the project; `path` is relative to the root and uses forward slashes. */
export type SourceFile = { path: string; text: string };

export type Project = { root: string; files: SourceFile[] };

/** A rule looks at the whole project: some defects are only visible across files. */
export type Rule = (project: Project) => Finding[];

const SKIPPED = new Set(['node_modules', '.git', '.sluice', '.temp', 'dist', 'results']);
const TEXT_FILE = /\.(tsx?|js|json|md|sql|toml|yml|html|css|sh|control)$|(^|\/)(LICENSE|\.[\w.]+|run)$/;

/** Reads every text file below `root` that belongs to the project. */
export function readProject(root: string): Project {
  const files: SourceFile[] = [];
  const visit = (folder: string): void => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      // By name, not by kind: in a second worktree .git is a file, with a path of that machine in it.
      if (SKIPPED.has(entry.name)) continue;
      const absolute = join(folder, entry.name);
      const path = relative(root, absolute).split(sep).join('/');
      if (entry.isDirectory()) visit(absolute);
      else if (entry.isFile() && TEXT_FILE.test(path)) {
        files.push({ path, text: readFileSync(absolute, 'utf8') });
      }
    }
  };
  visit(root);
  files.sort((a, b) => (a.path < b.path ? -1 : 1));
  return { root, files };
}

/** The 1-based line of a character offset. */
export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let i = text.indexOf('\n'); i !== -1 && i < offset; i = text.indexOf('\n', i + 1)) line++;
  return line;
}

/** Every match of a global pattern in `text`, as findings in `file`. */
export function findMatches(
  file: string,
  text: string,
  pattern: RegExp,
  rule: string,
  message: (match: RegExpMatchArray) => string,
): Finding[] {
  return [...text.matchAll(pattern)].map((match) => ({
    file,
    line: lineAt(text, match.index),
    rule,
    message: message(match),
  }));
}
