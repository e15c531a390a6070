// Request lines and headers with something wrong in them. A header is a pair, so that one can come twice.

import type { Random } from '../../support/load.ts';
import { pick } from './body.ts';

export interface Head {
  method: string;
  path: string;
  headers: [name: string, value: string][];
  /** False once a mutation has hidden where the request ends. */
  isFramed: boolean;
}

const METHODS = [
  'GET',
  'POST',
  'PUT',
  'DELETE',
  'PATCH',
  'OPTIONS',
  'HEAD',
  'TRACE',
  'PROPFIND',
  'PURGE',
  'SUBSCRIBE',
];
const TYPES = [
  'application/json',
  'application/json; charset=utf-8',
  'application/json;charset="UTF-8"',
  'application/json; charset=utf-16',
  'APPLICATION/JSON',
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/json, application/json',
  'application/',
  ';',
];
const STRANGE: [name: string, value: string][] = [
  ['content-encoding', 'gzip'],
  ['content-encoding', 'identity'],
  ['expect', '100-continue'],
  ['expect', 'the-unexpected'],
  ['upgrade', 'websocket'],
  ['x-request-id', '"><script>'],
  ['x-request-id', 'a'.repeat(65)],
  ['x-request-id', 'sane-1'],
  ['x-forwarded-for', "' or 1=1"],
  ['x-forwarded-proto', 'javascript:'],
  ['x-http-method-override', 'DELETE'],
  ['x-original-url', '/admin/pools'],
  ['cookie', 'sluice_session=v2.99999999999.aaaaaaaaaaaaaaaaaaaaaa.bbbb.cccc'],
  ['cookie', ';;=;='],
  ['idempotency-key', ' '],
  ['idempotency-key', 'x'.repeat(201)],
  ['x-sluice-name', '\u00e9'],
  ['x-sluice-csrf', '1'],
  ['origin', 'null'],
  ['range', 'bytes=0-'],
  ['if-none-match', '*'],
  ['accept', 'application/xml'],
  ['te', 'trailers'],
  ['traceparent', '00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-ff'],
  ['authorization', 'Bearer undefined'],
  ['authorization', 'Basic Og=='],
  ['authorization', `Bearer ${'a'.repeat(5_000)}`],
  ['authorization', 'Bearer eyJhbGciOiJub25lIn0.e30.'],
  ['host', 'elsewhere.example'],
  ['host', ''],
];
const SEGMENTS = [
  '..',
  '.',
  '',
  '%2e%2e',
  '%00',
  '%ff',
  '%',
  '%2f',
  '~',
  ':pool',
  "'",
  '"',
  'a'.repeat(201),
  '*',
  ';',
  '\\',
  '{}',
  'live',
  'claims',
];
const QUERIES = [
  'limit=0',
  'limit=1',
  'limit=-1',
  'limit=99999999999999999999',
  'after=x',
  'pool_id=%00',
  'pool_id=%ff',
  '__proto__=1',
  'a=1&a=2',
  '&&&=',
  'limit=1&limit=1',
  'state=queued',
  'db=3',
  'since=2026-02-30',
  '%',
  `x=${'y'.repeat(3_000)}`,
  'claim_id=abc',
  'status=success',
  'hub.mode=subscribe&hub.verify_token=x&hub.challenge=1',
];
const PATHS = [
  '/',
  '*',
  '//',
  '/healthz',
  '/readyz',
  '/metrics',
  '/openapi.json',
  '/v1',
  '/v1/pools/unknown',
  '/v1/claims/',
  '/admin',
  '/webhooks/',
  '/drop/abuse',
  '/favicon.ico',
  '/.env',
  '/v1/pools/abuse/live',
  'http://elsewhere.example/v1/pools/abuse',
  '/call-events?x=1#y',
];

type Mutation = (head: Head, random: Random) => void;

const MUTATIONS: readonly Mutation[] = [
  (head, random) => {
    head.method = pick(random, METHODS);
  },
  (head, random) => {
    head.path = pick(random, PATHS);
  },
  (head, random) => {
    const parts = head.path.split('/');
    parts.splice(1 + random.below(parts.length), random.below(2), pick(random, SEGMENTS));
    head.path = parts.join('/');
  },
  (head, random) => {
    head.path += (head.path.includes('?') ? '&' : '?') + pick(random, QUERIES);
  },
  (head, random) => {
    head.path += `/${'p'.repeat(random.below(14_000))}`;
  },
  (head, random) => {
    head.headers.push(pick(random, STRANGE));
  },
  (head, random) => {
    head.headers.push(pick(random, STRANGE), pick(random, STRANGE));
  },
  (head, random) => {
    const index = random.below(head.headers.length);
    head.headers.splice(index, 1);
  },
  (head, random) => {
    const found = head.headers[random.below(head.headers.length)];
    if (found !== undefined) head.headers.push([...found]);
  },
  (head, random) => {
    const found = head.headers[random.below(head.headers.length)];
    if (found === undefined) return;
    const at = random.below(found[1].length + 1);
    const printable = String.fromCharCode(0x21 + random.below(94));
    found[1] = found[1].slice(0, at) + printable + found[1].slice(at + random.below(2));
  },
  (head, random) => {
    const found = head.headers.find(([name]) => name === 'content-type');
    if (found !== undefined) found[1] = pick(random, TYPES);
  },
  (head, random) => {
    head.headers.push(['x-large', 'x'.repeat(random.below(20_000))]);
  },
  (head, random) => {
    for (let count = random.below(1_500); count > 0; count--) head.headers.push(['x', 'y']);
  },
];

/** After one of these a server cannot tell where the request ends, or whether it is a request. */
const UNFRAMED: readonly Mutation[] = [
  (head) => {
    head.method = '';
  },
  (head) => {
    head.method = 'get';
  },
  (head, random) => {
    head.method = 'M'.repeat(random.below(100));
  },
  (head) => {
    head.path = `${head.path} x`;
  },
  (head) => {
    head.path = '';
  },
  (head) => {
    head.path = `${head.path}\u0001`;
  },
  (head, random) => {
    head.headers.push([
      'content-length',
      pick(random, ['-1', '0', '1', '99999', '1e3', '0x10', '+5', '18446744073709551617', '5, 5', '']),
    ]);
  },
  (head, random) => {
    head.headers.push([
      'transfer-encoding',
      pick(random, ['chunked', 'identity', 'gzip, chunked', 'chunked, chunked', 'xchunked', '']),
    ]);
  },
  (head, random) => {
    head.headers.push(
      pick(random, [
        [' folded', 'x'],
        ['no colon', ''],
        ['x\u0000y', 'z'],
        ['x y', 'z'],
        ['', 'z'],
        ['x', 'a\rb'],
        ['x', 'a\nb: c'],
      ] as [string, string][]),
    );
  },
  (head) => {
    head.headers.push(['connection', 'keep-alive, upgrade, content-length']);
  },
];

export function mutateHead(head: Head, random: Random): void {
  for (let times = 1 + random.below(2); times > 0; times--) pick(random, MUTATIONS)(head, random);
}

export function breakHead(head: Head, random: Random): void {
  pick(random, UNFRAMED)(head, random);
  head.isFramed = false;
}
