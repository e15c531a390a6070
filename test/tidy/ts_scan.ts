/**
 * Tells TypeScript's string literals and comments from its code. The compiler's own scanner is not at hand (the
 * native compiler has no JavaScript API), and these checks need no more than this.
 */
export type TsPiece = { kind: 'comment' | 'string'; start: number; end: number };

/** After one of these a slash divides; anywhere else it opens a regular expression. */
const ENDS_A_VALUE = /[\w$)\]}'"`]$/;
const KEYWORD_BEFORE_REGEX = /\b(return|typeof|case|in|of|do|else|void|delete|throw|new|await|yield)$/;

export function scanTypeScript(text: string): TsPiece[] {
  const pieces: TsPiece[] = [];
  scanCode(text, 0, pieces, false);
  return pieces;
}

/** The source with its comments blanked out; offsets and line numbers stay what they were. */
export function withoutComments(text: string): string {
  let result = '';
  let at = 0;
  for (const piece of scanTypeScript(text)) {
    if (piece.kind !== 'comment') continue;
    result += text.slice(at, piece.start) + text.slice(piece.start, piece.end).replace(/[^\n]/g, ' ');
    at = piece.end;
  }
  return result + text.slice(at);
}

/** Scans code from `at`; inside a template's `${…}` it returns at the closing brace. */
function scanCode(text: string, start: number, pieces: TsPiece[], inTemplate: boolean): number {
  let depth = 0;
  let at = start;
  while (at < text.length) {
    const char = text[at];
    const two = text.slice(at, at + 2);
    let end = at + 1;
    if (two === '//') {
      const newline = text.indexOf('\n', at);
      end = newline === -1 ? text.length : newline;
      pieces.push({ kind: 'comment', start: at, end });
    } else if (two === '/*') {
      const close = text.indexOf('*/', at + 2);
      end = close === -1 ? text.length : close + 2;
      pieces.push({ kind: 'comment', start: at, end });
    } else if (char === "'" || char === '"') {
      end = quotedEnd(text, at, char);
      pieces.push({ kind: 'string', start: at, end });
    } else if (char === '`') {
      const piece: TsPiece = { kind: 'string', start: at, end: at };
      pieces.push(piece);
      end = templateEnd(text, at, pieces);
      piece.end = end;
    } else if (char === '/' && opensRegex(text, at)) end = regexEnd(text, at);
    else if (char === '{') depth++;
    else if (char === '}') {
      if (inTemplate && depth === 0) return end;
      depth--;
    }
    at = end;
  }
  return at;
}

function templateEnd(text: string, start: number, pieces: TsPiece[]): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '`') {
    if (text[at] === '\\') at += 2;
    else if (text.startsWith('${', at)) at = scanCode(text, at + 2, pieces, true);
    else at++;
  }
  return at + 1;
}

function quotedEnd(text: string, start: number, quote: string): number {
  let at = start + 1;
  while (at < text.length && text[at] !== quote && text[at] !== '\n') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}

function opensRegex(text: string, at: number): boolean {
  const before = text.slice(Math.max(0, at - 40), at).trimEnd();
  return !ENDS_A_VALUE.test(before) || KEYWORD_BEFORE_REGEX.test(before);
}

function regexEnd(text: string, start: number): number {
  let inClass = false;
  let at = start + 1;
  for (; at < text.length && text[at] !== '\n'; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === '[') inClass = true;
    else if (text[at] === ']') inClass = false;
    else if (text[at] === '/' && !inClass) return at + 1;
  }
  return at;
}
