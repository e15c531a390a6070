// An answer as one text, for one write: what node:http would send, byte by byte.

import { STATUS_CODES, validateHeaderName, validateHeaderValue } from 'node:http';
import type { HttpResponse } from '#core/router.ts';

/** Longer than the idle time of common load balancers (60 s), so that they close first and never meet a closed socket. */
export const KEEP_ALIVE_MS = 65_000;
const MS_PER_SEC = 1_000;
const KEPT = `Connection: keep-alive\r\nKeep-Alive: timeout=${KEEP_ALIVE_MS / MS_PER_SEC}\r\n\r\n`;
const CLOSED = 'Connection: close\r\n\r\n';

export interface PlainAnswer {
  readonly text: string;
  readonly encoding: 'latin1' | 'utf8';
}

/** The body has to be a text. */
export function plainAnswer(answer: HttpResponse, requestId: string, isKept: boolean): PlainAnswer {
  const { status, headers, body } = answer;
  const content = String(body);
  const bytes = Buffer.byteLength(content);
  const own = `x-request-id: ${requestId}\r\ncontent-length: ${bytes}\r\n`;
  const text = `${headOf(status, headers)}${own}${dateLine()}${isKept ? KEPT : CLOSED}${content}`;
  // Where each character is one byte, the two write the same, and one of them copies.
  return { text, encoding: bytes === content.length ? 'latin1' : 'utf8' };
}

// The routes answer with few distinct header objects.
const heads = new WeakMap<object, Map<number, string>>();

function headOf(status: number, headers: HttpResponse['headers']): string {
  let ofHeaders = heads.get(headers);
  if (ofHeaders === undefined) {
    ofHeaders = new Map();
    heads.set(headers, ofHeaders);
  }
  let head = ofHeaders.get(status);
  if (head === undefined) {
    const lines = Object.entries(headers).map(([name, value]) => lineOf(name, value));
    head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}`;
    ofHeaders.set(status, head);
  }
  return head;
}

/** Throws, as node:http does, where a header would be more than its line. */
function lineOf(name: string, value: string): string {
  validateHeaderName(name);
  validateHeaderValue(name, value);
  return `${name}: ${value}\r\n`;
}

let second = 0;
let date = '';

/** Written once a second. */
function dateLine(): string {
  const now = Math.trunc(Date.now() / MS_PER_SEC);
  if (now !== second) {
    second = now;
    date = `Date: ${new Date(now * MS_PER_SEC).toUTCString()}\r\n`;
  }
  return date;
}
