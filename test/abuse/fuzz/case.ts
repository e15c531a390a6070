// A case of the fuzzer: what is written to one connection. It follows from the seed and its number alone, so that one can
// be looked at without the others; only signed times are of now.

import { type Random, seededRandom } from '../../support/load.ts';
import { DOORS, requestTo } from '../doors.ts';
import type { Place } from '../place.ts';
import { mutateBody, pick } from './body.ts';
import { breakHead, type Head, mutateHead } from './head.ts';

export type Ending =
  /** The last request asks to be the last, and the server closes. */
  | 'close'
  /** We have nothing more to say, and say so. */
  | 'half'
  /** We leave, as a process that is killed. */
  | 'reset';

export interface FuzzCase {
  readonly index: number;
  readonly what: string;
  /** Written one after the other, each in a packet of its own. */
  readonly pieces: readonly Buffer[];
  /** The methods of the requests in it, in their order. */
  readonly methods: readonly string[];
  /** True where every request is whole: then each has to be answered, up to one that closes the connection. */
  readonly isFramed: boolean;
  readonly ending: Ending;
}

const NODE_DOORS = DOORS.filter(({ paths }) => paths.node !== undefined);
/** Far apart, so that the numbers of two cases have nothing in common. */
const SEED_STEP = 0x9e3779b1;
const MAX_PIPELINED = 4;
const KNOWN_IDS = 20;

/** Out of a hundred. */
const SHARES = {
  known: 10,
  body: 45,
  head: 45,
  resign: 60,
  chunked: 25,
  split: 20,
  pipelined: 8,
  broken: 8,
  cut: 6,
  garbage: 2,
};

export async function makeCase(seed: number, index: number, place: Place): Promise<FuzzCase> {
  const random = seededRandom((seed + Math.imul(index + 1, SEED_STEP)) >>> 0);
  const happens = (share: number): boolean => random.below(100) < share;
  if (happens(SHARES.garbage)) return garbage(index, random);
  const count = happens(SHARES.pipelined) ? 2 + random.below(MAX_PIPELINED - 1) : 1;
  const requests: Buffer[] = [];
  const heads: Head[] = [];
  for (let nth = 0; nth < count; nth++) {
    const isLast = nth === count - 1;
    const { head, bytes } = await makeRequest(`fuzz-${seed}-${index}-${nth}`, random, place, isLast);
    heads.push(head);
    requests.push(bytes);
  }
  const whole = Buffer.concat(requests);
  const isCut = happens(SHARES.cut);
  const sent = isCut ? whole.subarray(0, random.below(whole.length)) : whole;
  const isFramed = !isCut && heads.every((head) => head.isFramed);
  return {
    index,
    what: heads.map(({ method, path }) => `${method} ${path.slice(0, 60)}`).join(' | '),
    pieces: happens(SHARES.split) ? split(sent, random) : [sent],
    methods: heads.map(({ method }) => method),
    isFramed,
    ending: isFramed ? 'close' : isCut && random.below(2) === 0 ? 'reset' : 'half',
  };
}

async function makeRequest(fresh: string, random: Random, place: Place, isLast: boolean) {
  const happens = (share: number): boolean => random.below(100) < share;
  const door = pick(random, NODE_DOORS);
  // Some come again and again: duplicates, conflicts, and slots that are sold.
  const id = happens(SHARES.known) ? `fuzz-known-${random.below(KNOWN_IDS)}` : fresh;
  const good = await requestTo(door, place, { id });
  let body: Buffer | undefined = good.body === undefined ? undefined : Buffer.from(good.body);
  let { headers } = good;
  if (happens(SHARES.body)) {
    const mutated = mutateBody(body ?? Buffer.from('{}'), random);
    body = mutated;
    if (happens(SHARES.resign)) ({ headers } = await requestTo(door, place, { id, body: mutated }));
  }
  const head: Head = {
    method: good.method,
    path: good.path,
    headers: [
      ['host', new URL(place.url).host],
      ...Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]),
    ],
    isFramed: true,
  };
  if (happens(SHARES.head)) mutateHead(head, random);
  if (happens(SHARES.broken)) breakHead(head, random);
  return { head, bytes: toBytes(head, body, random, isLast) };
}

/** Framing goes in last, so that no mutation of a header undoes it without saying so. */
function toBytes(head: Head, body: Buffer | undefined, random: Random, isLast: boolean): Buffer {
  const { method, path, headers } = head;
  const isChunked = body !== undefined && random.below(100) < SHARES.chunked;
  const framing: [string, string][] =
    body === undefined
      ? []
      : isChunked
        ? [['transfer-encoding', 'chunked']]
        : [['content-length', String(body.length)]];
  if (isLast) framing.push(['connection', 'close']);
  const lines = [...headers, ...framing].map(([name, value]) => `${name}: ${value}\r\n`);
  const top = Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1');
  if (body === undefined) return top;
  return Buffer.concat([top, isChunked ? chunk(body, random) : body]);
}

function chunk(body: Buffer, random: Random): Buffer {
  const parts: Buffer[] = [];
  const extension = random.below(4) === 0 ? ';name=value' : '';
  for (let at = 0; at < body.length; ) {
    const piece = body.subarray(at, at + 1 + random.below(random.below(2) === 0 ? 8 : 10_000));
    parts.push(Buffer.from(`${piece.length.toString(16)}${extension}\r\n`), piece, Buffer.from('\r\n'));
    at += piece.length;
  }
  const trailer = random.below(8) === 0 ? 'x-trailer: content-encoding\r\n' : '';
  return Buffer.concat([...parts, Buffer.from(`0\r\n${trailer}\r\n`)]);
}

function split(whole: Buffer, random: Random): Buffer[] {
  const pieces: Buffer[] = [];
  const wanted = 2 + random.below(5);
  let at = 0;
  for (let nth = 1; nth < wanted; nth++) {
    const next = at + random.below(whole.length - at + 1);
    pieces.push(whole.subarray(at, next));
    at = next;
  }
  pieces.push(whole.subarray(at));
  return pieces.filter((piece) => piece.length > 0);
}

function garbage(index: number, random: Random): FuzzCase {
  const bytes = Buffer.from(Array.from({ length: 1 + random.below(500) }, () => random.below(256)));
  const known = [
    Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00]),
    Buffer.from('GET / HTTP/9.9\r\n\r\n'),
    Buffer.from('\r\n\r\n\r\n'),
  ];
  const pieces = [random.below(2) === 0 ? bytes : pick(random, known)];
  return { index, what: 'garbage', pieces, methods: [], isFramed: false, ending: 'half' };
}
