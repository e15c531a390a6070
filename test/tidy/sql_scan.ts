/**
 * Just enough of SQL's lexical rules to tell code from comments and quoted text. Postgres's own parser would be
 * exact, but it needs a server, and these checks should run before anything is started.
 */
export type Piece = {
  kind: 'code' | 'comment' | 'string' | 'identifier' | 'dollar';
  start: number;
  end: number;
};

const DOLLAR_TAG = /\$(?:[a-z_]\w*)?\$/iy;

export function scanSql(text: string): Piece[] {
  const pieces: Piece[] = [];
  let codeStart = 0;
  let at = 0;
  const take = (kind: Piece['kind'], end: number): void => {
    if (at > codeStart) pieces.push({ kind: 'code', start: codeStart, end: at });
    pieces.push({ kind, start: at, end });
    at = end;
    codeStart = end;
  };
  while (at < text.length) {
    const char = text[at];
    if (char === '-' && text[at + 1] === '-') take('comment', endOrLength(text, text.indexOf('\n', at)));
    else if (char === '/' && text[at + 1] === '*') take('comment', blockCommentEnd(text, at));
    else if (char === "'") take('string', quotedEnd(text, at, "'"));
    else if (char === '"') take('identifier', quotedEnd(text, at, '"'));
    else if (char === '$') {
      const tag = dollarTagAt(text, at);
      if (tag === undefined) at++;
      else {
        const close = text.indexOf(tag, at + tag.length);
        take('dollar', close === -1 ? text.length : close + tag.length);
      }
    } else at++;
  }
  if (at > codeStart) pieces.push({ kind: 'code', start: codeStart, end: at });
  return pieces;
}

/** The text with the given kinds of pieces blanked out; offsets and line numbers stay what they were. */
export function blank(text: string, kinds: ReadonlySet<Piece['kind']>): string {
  return scanSql(text)
    .map((piece) => {
      const part = text.slice(piece.start, piece.end);
      return kinds.has(piece.kind) ? part.replace(/[^\n]/g, ' ') : part;
    })
    .join('');
}

const ALL_BUT_CODE: ReadonlySet<Piece['kind']> = new Set(['comment', 'string', 'identifier', 'dollar']);

/** Code only: what is quoted in any way, and comments, are blanked out. */
export function codeOnly(text: string): string {
  return blank(text, ALL_BUT_CODE);
}

/** Code only, looking into dollar quotes too: they hold function bodies. */
export function codeWithBodies(text: string): string {
  return scanSql(text)
    .map((piece) => {
      const part = text.slice(piece.start, piece.end);
      if (piece.kind === 'code') return part;
      if (piece.kind !== 'dollar') return part.replace(/[^\n]/g, ' ');
      const tag = dollarTagAt(part, 0) ?? '';
      const hole = ' '.repeat(tag.length);
      return hole + codeWithBodies(part.slice(tag.length, -tag.length)) + hole;
    })
    .join('');
}

export type Statement = { sql: string; line: number };

/** Splits a script at its top-level semicolons. `line` is where the statement's first word stands. */
export function splitStatements(text: string): Statement[] {
  const code = codeOnly(text);
  const statements: Statement[] = [];
  let start = 0;
  while (start < text.length) {
    const semicolon = code.indexOf(';', start);
    const end = semicolon === -1 ? text.length : semicolon + 1;
    // Quoted pieces are blank in `code`, comments too; only comments may be left out at the front.
    const uncommented = blank(text.slice(start, end), new Set(['comment']));
    const firstWord = uncommented.search(/[^\s;]/);
    if (firstWord !== -1) {
      const line = text.slice(0, start + firstWord).split('\n').length;
      statements.push({ sql: text.slice(start + firstWord, end), line });
    }
    start = end;
  }
  return statements;
}

function dollarTagAt(text: string, at: number): string | undefined {
  // A dollar inside an identifier (a$b$) or a parameter ($1) opens nothing.
  if (at > 0 && /\w/.test(text[at - 1] ?? '')) return undefined;
  DOLLAR_TAG.lastIndex = at;
  return DOLLAR_TAG.exec(text)?.[0];
}

function endOrLength(text: string, index: number): number {
  return index === -1 ? text.length : index;
}

/** Postgres nests block comments. */
function blockCommentEnd(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const two = text.slice(at, at + 2);
    if (two === '/*') depth++;
    else if (two === '*/') depth--;
    else continue;
    at++;
    if (depth === 0) return at + 1;
  }
  return text.length;
}

function quotedEnd(text: string, start: number, quote: string): number {
  const escapes = quote === "'" && /(^|\W)e$/i.test(text.slice(Math.max(0, start - 2), start));
  for (let at = start + 1; at < text.length; at++) {
    if (escapes && text[at] === '\\') at++;
    else if (text[at] === quote) {
      if (text[at + 1] !== quote) return at + 1;
      at++;
    }
  }
  return text.length;
}
