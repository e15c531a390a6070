// What is wrong with an answer: its status, its shape, its headers, and what it gives away. Pure.

import type { Answer } from '../server/support.ts';

export interface Expected {
  readonly status: number;
  /** `error.code`, or the word in `status` of an answer that takes the request. Anything where left out. */
  readonly word?: string;
  /** The tables that may change, and must. */
  readonly changes?: readonly string[];
  /** For 405; else whatever the door has. */
  readonly allow?: string;
  /** Set where what stands before the door answers, with a body of its own or none. */
  readonly isAnsweredInFront?: true;
}

/** Of our inside: SQL, names of tables and schemas, SQLSTATEs, stack traces, paths, addresses of databases. */
const INSIDE: readonly RegExp[] = [
  /\b(select|insert into|update|delete from)\s+[\w."*]+\s+(from|set|values|where|\()/i,
  /\bSL0\d\d\b|SQLSTATE|syntax error at|relation "|violates \w+ constraint/,
  /\b(pgmq|pg_catalog|intake|webhook|calls|audit|public)\.[a-z_]{4,}\b/,
  /\bat (async )?[\w.<>]+ \(|\n\s+at |node_modules|\.ts:\d+|ext:|file:\/\//,
  /(^|[\s"'(])\/(home|root|tmp|usr|var|work|opt|etc|proc)\//,
  /postgres(ql)?:\/\/|ECONN[A-Z]+|getaddrinfo|connect(ion)? refused/i,
  /__proto__|\[object Object\]/,
];

/** Statuses that say "come back": HTTP has a header for when. */
const COME_BACK: ReadonlySet<number> = new Set([429, 503]);

export function complaints(answer: Answer, expected: Expected, hidden: readonly string[]): string[] {
  const found: string[] = [];
  const { status, headers, text, json } = answer;
  if (status !== expected.status)
    found.push(`answered ${status}, not ${expected.status}: ${text.slice(0, 300)}`);
  found.push(...leaks(answer, hidden));
  if (expected.isAnsweredInFront) return found;
  if (status >= 400) found.push(...shapeOf(answer));
  const word = status >= 400 ? json?.error?.code : json?.status;
  if (expected.word !== undefined && word !== expected.word) found.push(`said ${word}, not ${expected.word}`);
  if (COME_BACK.has(status) && !/^[1-9]\d{0,3}$/.test(headers['retry-after'] ?? ''))
    found.push(`has no Retry-After: ${headers['retry-after']}`);
  if (status === 405 && headers.allow !== expected.allow)
    found.push(`allows ${headers.allow}, not ${expected.allow}`);
  return found;
}

/** The one shape of a refusal. */
export function shapeOf({ headers, text, json }: Answer): string[] {
  const error = json?.error;
  const isShaped =
    keys(json) === 'error' &&
    keys(error) === 'code,hint,message,request_id' &&
    Object.values(error).every((value) => typeof value === 'string' && value !== '');
  if (!isShaped) return [`is not one of our refusals: ${text.slice(0, 300)}`];
  return error.request_id === headers['x-request-id'] ? [] : ['names another request id than its header'];
}

export function leaks({ headers, text }: Answer, hidden: readonly string[]): string[] {
  const said = `${text}\n${Object.values(headers).flat().join('\n')}`;
  return [
    ...INSIDE.flatMap((pattern) => {
      const found = pattern.exec(said)?.[0];
      return found === undefined ? [] : [`shows its inside: ${found}`];
    }),
    ...hidden.filter((secret) => said.includes(secret)).map(() => 'holds a secret'),
  ];
}

function keys(value: unknown): string {
  return typeof value === 'object' && value !== null ? Object.keys(value).sort().join() : '';
}
