import { posix } from 'node:path';
import { type Finding, findMatches, lineAt, type Project, type SourceFile } from './project.ts';
import { scanTypeScript, type TsPiece, withoutComments } from './ts_scan.ts';

const FILE_LINES_MAX = 400;
export const CORE = 'db1/supabase/functions/_shared/';
const SPECIFIER = /(?:\bfrom|\bimport)\s*\(?\s*(['"])([^'"\n]+)\1/g;

const OBJECT =
  '(or replace|unlogged|temp|temporary|unique|table|index|function|procedure|schema|extension|role|user|type|view|' +
  'materialized|publication|trigger|policy|database|sequence|default privileges|system)';
const SQL_START = new RegExp(
  `^['"\`]\\s*(select\\s|insert\\s+into\\s|update\\s+\\S+\\s+set\\s|delete\\s+from\\s|with\\s+(recursive\\s+)?\\w+\\s+as\\s|` +
    `(create|alter|drop)\\s+${OBJECT}\\b|truncate\\s|(grant|revoke)\\s.*\\s(to|from)\\s|call\\s+[\\w.]+\\(|do\\s+\\$)`,
  'i',
);
/**
 * src/db/ is where calls are built. src/migrate/ and src/doctor/ ask databases that may lack our functions; a statement
 * of a line or two reads best beside its caller. src/transfer/ copies whole tables, also of databases that were made before a
 * function for it could be. What is not deployed may talk to its own databases as it likes.
 */
const SQL_ALLOWED = /^(src\/(db|migrate|doctor|transfer)|test|bench|chaos)\//;

const isTypeScript = (file: SourceFile): boolean => file.path.endsWith('.ts');

export function fileLength(project: Project): Finding[] {
  return project.files.filter(isTypeScript).flatMap((file) => {
    const lines = file.text.trimEnd().split('\n').length;
    if (lines <= FILE_LINES_MAX) return [];
    const message = `${lines} lines, more than ${FILE_LINES_MAX}: split it by what its parts are about`;
    return [{ file: file.path, line: FILE_LINES_MAX + 1, rule: 'file-length', message }];
  });
}

/** The SQL function is the API; a statement in TypeScript would be a second one. */
export function noSqlInTypeScript(project: Project): Finding[] {
  return project.files
    .filter((file) => isTypeScript(file) && !SQL_ALLOWED.test(file.path))
    .flatMap((file) =>
      scanTypeScript(file.text)
        .filter((piece) => piece.kind === 'string')
        .filter((piece) => SQL_START.test(file.text.slice(piece.start, piece.end)))
        .map((piece) => ({
          file: file.path,
          line: lineAt(file.text, piece.start),
          rule: 'sql-in-typescript',
          message: 'a SQL statement in a string: make it a SQL function and call it through src/db/',
        })),
    );
}

/** The core runs on Node and Deno alike because it imports nothing but itself. */
export function coreImportsOnlyItself(project: Project): Finding[] {
  return project.files
    .filter((file) => isTypeScript(file) && file.path.startsWith(CORE))
    .flatMap((file) =>
      importsOf(file)
        .filter(({ specifier }) => {
          const target = posix.join(posix.dirname(file.path), specifier);
          return !/^\.\.?\/.*\.ts$/.test(specifier) || !target.startsWith(CORE);
        })
        .map(({ specifier, line }) => ({
          file: file.path,
          line,
          rule: 'core-import',
          message: `the core imports only its own files by relative .ts paths, not '${specifier}'`,
        })),
    );
}

/** A test that is switched off, or that switches the others off. */
export function noSwitchedOffTests(project: Project): Finding[] {
  return project.files
    .filter((file) => isTypeScript(file) && !file.path.startsWith('test/tidy/'))
    .flatMap((file) =>
      findMatches(
        file.path,
        withoutComments(file.text),
        /\b(test|it|describe|suite)\.(only|skip|todo)\b/g,
        'switched-off',
        (match) => `${match[0]} must not stay`,
      ),
    );
}

/** Plants stand in the tests of these rules and among the planted bugs. */
const FORGETTING_ALLOWED = /^test\/(tidy|mutation\/planted)\//;

/** Node 20 forgets an AbortSignal.timeout that only AbortSignal.any knows, and what it should have ended waits for ever. */
export function noForgottenTimeouts(project: Project): Finding[] {
  return project.files
    .filter(({ path }) => CODE.test(path) && !FORGETTING_ALLOWED.test(path))
    .map(({ path, text }) => ({ path, code: withoutComments(text) }))
    .filter(({ code }) => code.includes('AbortSignal.timeout('))
    .flatMap(({ path, code }) =>
      findMatches(
        path,
        code,
        /AbortSignal\.any\(/g,
        'forgotten-timeout',
        () =>
          'AbortSignal.any beside AbortSignal.timeout: take limited or within of deadline.ts, whose timer stays',
      ),
    );
}

export function importsOf(file: SourceFile): { specifier: string; line: number }[] {
  const code = withoutComments(file.text);
  return [...code.matchAll(SPECIFIER)].map((match) => ({
    specifier: match[2] ?? '',
    line: lineAt(code, match.index),
  }));
}

const CLASSES = '0[0389ABFLPZ]|2[0-8BDF]|3[4-9BDF]|4[024]|5[3-8]|F0|HV|P0|XX|SL';
const STATE = `(?:${CLASSES})(?:\\d\\d[0-9A-Z]|P\\d\\d)`;
/** A text that is nothing but SQLSTATEs, codes of PostgREST, or how they begin: '40001', '08', '57P', 'PGRST202', '40001 40P01'. */
const STATES_TEXT = new RegExp(`^['"\`](?:(?:${STATE}|(?:${CLASSES})P?|PGRST\\w*)(?: |(?=['"\`])))+['"\`]$`);
/** Two characters are a class only where a code is compared with them. */
const SHORT_TEXT = /^.{2,3}.$/;
const COMPARES = /(?:startsWith\(|includes\(|[=!]==? ?|case |\[|, )$/;
/** A pattern with a SQLSTATE, or one that begins with a class: /^(08|57P)/, /(40001|40P01)/, /^PGRST/. */
const STATES_PATTERN = new RegExp(
  `/[^/\\n]*(?:\\b${STATE}\\b|\\bPGRST)[^/\\n]*/|/\\^\\(?(?:\\?:)?(?:${CLASSES})[0-9A-Z.|)]`,
  'g',
);
/** The error table. What is not deployed may look at any code it likes. */
const SQLSTATE_ALLOWED =
  /^(test|bench|chaos)\/|\.test\.ts$|_conformance\/|^db1\/supabase\/functions\/_shared\/failure\.ts$/;
const CODE = /\.([cm]?[jt]s|[jt]sx)$/;

/** Who is to blame for an error is said once, in failure.ts. */
export function noSqlstateOutsideTheTable(project: Project): Finding[] {
  const message = 'a SQLSTATE is judged here: ask blameOf or toHttpError of failure.ts';
  return project.files
    .filter(({ path }) => CODE.test(path) && !SQLSTATE_ALLOWED.test(path))
    .flatMap((file) => [
      ...scanTypeScript(file.text)
        .filter((piece) => piece.kind === 'string' && isStates(file.text, piece))
        .map((piece) => ({
          file: file.path,
          line: lineAt(file.text, piece.start),
          rule: 'sqlstate',
          message,
        })),
      ...findMatches(file.path, withoutComments(file.text), STATES_PATTERN, 'sqlstate', () => message),
    ]);
}

function isStates(text: string, { start, end }: TsPiece): boolean {
  const literal = text.slice(start, end);
  if (!STATES_TEXT.test(literal)) return false;
  return !SHORT_TEXT.test(literal) || COMPARES.test(text.slice(Math.max(0, start - 20), start));
}
