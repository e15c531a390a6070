import { lineAt } from './project.ts';
import { blank, codeOnly } from './sql_scan.ts';

/** A `create function` or `create procedure` found in a script. */
export type SqlFunction = {
  /** Schema-qualified name and input types: what Postgres tells two functions apart by. */
  signature: string;
  /** First line and number of lines, from `create` to the closing semicolon. */
  line: number;
  lines: number;
  /** Everything but the body: arguments, return type, language, settings. */
  attributes: string;
  hasComment: boolean;
};

const CREATE = /\bcreate\s+(?:or\s+replace\s+)?(?:function|procedure)\s+/gi;
const TWO_WORD_TYPES = /^(double|timestamp|character|bit|time|interval|national)\b/i;

export function findFunctions(text: string): SqlFunction[] {
  const code = codeOnly(text);
  // Quoted identifiers stay readable here: they can be part of the name.
  const readable = blank(text, new Set(['comment', 'dollar']));
  return [...code.matchAll(CREATE)].map((match) => {
    const start = match.index;
    const semicolon = code.indexOf(';', start);
    const end = semicolon === -1 ? text.length : semicolon + 1;
    const nameStart = start + match[0].length;
    const open = code.indexOf('(', nameStart);
    const close = closingParenthesis(code, open);
    const name = readable.slice(nameStart, open).trim().toLowerCase().replaceAll('"', '');
    const types = inputTypes(code.slice(open + 1, close));
    const qualified = name.includes('.') ? name : `public.${name}`;
    return {
      signature: `${qualified}(${types.join(', ')})`,
      line: lineAt(text, start),
      lines: text.slice(start, end).split('\n').length,
      attributes: code.slice(start, end),
      hasComment: hasCommentAbove(text, start),
    };
  });
}

function closingParenthesis(code: string, open: number): number {
  let depth = 0;
  for (let at = open; at < code.length; at++) {
    if (code[at] === '(') depth++;
    else if (code[at] === ')' && --depth === 0) return at;
  }
  return code.length;
}

function inputTypes(list: string): string[] {
  return splitAtCommas(list)
    .filter((argument) => !/^out\s/i.test(argument))
    .map((argument) => {
      const declared = argument
        .replace(/\s+default\s[\s\S]*$/i, '')
        .replace(/\s*=[\s\S]*$/, '')
        .replace(/^(in|inout|variadic)\s+/i, '')
        // Postgres forgets a type's modifiers: numeric(10, 2) and numeric are one signature.
        .replace(/\([^)]*\)/, '')
        .toLowerCase()
        .replace(/\s+/g, ' ');
      const named = declared.includes(' ') && !TWO_WORD_TYPES.test(declared);
      return canonicalType(named ? declared.slice(declared.indexOf(' ') + 1) : declared);
    });
}

const TYPE_ALIASES: Readonly<Record<string, string>> = {
  int: 'integer',
  int4: 'integer',
  int8: 'bigint',
  bool: 'boolean',
  'timestamp with time zone': 'timestamptz',
  'character varying': 'varchar',
};

function canonicalType(type: string): string {
  const array = type.endsWith('[]') ? '[]' : '';
  const element = type.slice(0, type.length - array.length).trim();
  return (TYPE_ALIASES[element] ?? element) + array;
}

function splitAtCommas(list: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let at = 0; at <= list.length; at++) {
    const char = list[at];
    if (char === '(') depth++;
    else if (char === ')') depth--;
    else if (at === list.length || (char === ',' && depth === 0)) {
      parts.push(list.slice(start, at).trim());
      start = at + 1;
    }
  }
  return parts.filter((part) => part !== '');
}

function hasCommentAbove(text: string, start: number): boolean {
  const above = text.slice(0, start).split('\n').at(-2)?.trim() ?? '';
  return above.startsWith('--') || above.endsWith('*/');
}
