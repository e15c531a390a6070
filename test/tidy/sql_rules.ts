import { type Finding, findMatches, type Project, type SourceFile } from './project.ts';
import { findFunctions } from './sql_functions.ts';
import { codeWithBodies } from './sql_scan.ts';

const FUNCTION_LINES_MAX = 70;

const KEYWORDS = [
  'SELECT|INSERT|UPDATE|DELETE|FROM|WHERE|INTO|VALUES|RETURNING|SET|JOIN|LEFT|INNER|ORDER|GROUP|BY|HAVING|LIMIT',
  'CREATE|ALTER|DROP|TABLE|INDEX|FUNCTION|TRIGGER|TYPE|SCHEMA|EXTENSION|POLICY|PUBLICATION|UNLOGGED|REPLACE',
  'PRIMARY|KEY|UNIQUE|CHECK|DEFAULT|NOT|NULL|REFERENCES|CONSTRAINT|GRANT|REVOKE|TO|ON|CONFLICT|DO|NOTHING',
  'BEGIN|END|DECLARE|IF|THEN|ELSE|ELSIF|LOOP|RETURN|RETURNS|RAISE|EXCEPTION|LANGUAGE|PERFORM|EXECUTE|CASE|WHEN',
  'AND|OR|AS|IN|IS|WITH|FOR|LOCKED|SKIP|EXISTS|ANY|ALL|TRUE|FALSE|COUNT|COALESCE|USING|ROW|EACH',
  'TEXT|UUID|INT|INTEGER|BIGINT|BOOLEAN|JSONB|TIMESTAMPTZ|INTERVAL|VOID',
].join('|');
const UPPER_CASE_KEYWORD = new RegExp(`\\b(${KEYWORDS})\\b`, 'g');

const isSql = (file: SourceFile): boolean => file.path.endsWith('.sql');
const isMigration = (file: SourceFile): boolean => /^db\d\/supabase\/migrations\//.test(file.path);
/** Tests and benchmarks may define throw-away functions as they like; what is deployed may not. */
const isDeployed = (file: SourceFile): boolean => isMigration(file) || file.path.startsWith('src/');

/** Every deployed function has a fixed search path, a contract above it, and fits on a screen. */
export function functionShape(project: Project): Finding[] {
  return project.files
    .filter((file) => isSql(file) && isDeployed(file))
    .flatMap((file) =>
      findFunctions(file.text).flatMap((fn) => {
        const findings: Finding[] = [];
        const report = (rule: string, message: string): void => {
          findings.push({ file: file.path, line: fn.line, rule, message });
        };
        if (!/\bset\s+search_path\b/i.test(fn.attributes) && !mayCommit(fn.attributes)) {
          report(
            'search-path',
            `${fn.signature} has no "set search_path": a caller's path decides what it calls`,
          );
        }
        if (fn.lines > FUNCTION_LINES_MAX) {
          report('function-length', `${fn.signature} has ${fn.lines} lines, more than ${FUNCTION_LINES_MAX}`);
        }
        if (!fn.hasComment) {
          report('contract', `${fn.signature} has no comment directly above it that says what it promises`);
        }
        return findings;
      }),
    );
}

/** A procedure that has settings cannot commit, and to commit is what procedures are for. With its caller's rights only. */
function mayCommit(attributes: string): boolean {
  return (
    /^create\s+(?:or\s+replace\s+)?procedure\b/i.test(attributes) &&
    !/\bsecurity\s+definer\b/i.test(attributes)
  );
}

/** Before a release a function is edited where it stands, never defined again further down. */
export function functionDefinedOnce(project: Project): Finding[] {
  const first = new Map<string, string>();
  const findings: Finding[] = [];
  for (const file of project.files.filter((candidate) => isSql(candidate) && isMigration(candidate))) {
    const database = file.path.split('/')[0];
    for (const fn of findFunctions(file.text)) {
      const key = `${database} ${fn.signature}`;
      const earlier = first.get(key);
      if (earlier === undefined) first.set(key, `${file.path}:${fn.line}`);
      else {
        const message = `${fn.signature} is already defined at ${earlier}: edit it there`;
        findings.push({ file: file.path, line: fn.line, rule: 'defined-twice', message });
      }
    }
  }
  return findings;
}

/** One SQL hand: lower case. Names and text in quotes are left alone. */
export function lowerCaseSql(project: Project): Finding[] {
  return project.files
    .filter(isSql)
    .flatMap((file) =>
      findMatches(
        file.path,
        codeWithBodies(file.text),
        UPPER_CASE_KEYWORD,
        'lower-case',
        (match) => `${match[0]} is in upper case`,
      ),
    );
}
