// HTTP/1.1 is read in two places. What the short one takes has to be what node:http would have read: the same request, ending at the
// same byte. Then both ways are asked the same over real connections.

import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { ClaimRoutes } from '#core/claim.ts';
import { Router } from '#core/router.ts';
import { PROJECT_ROOT } from '../../src/project_root.ts';
import { HttpServer } from '../../src/server/http.ts';
import { readPlainRequest } from '../../src/server/plain_request.ts';
import { memoryLog, memoryPorts } from '../core/support.ts';

type Read = typeof readPlainRequest;

const BODY = '{"user_id":"ann"}';
const LENGTH = `Content-Length: ${BODY.length}`;
const START = 'POST /v1/pools/p/claims?q HTTP/1.1';

function request(lines: readonly string[], start = START, body = BODY): string {
  return `${[start, 'Host: x', 'Content-Type: application/json', ...lines].join('\r\n')}\r\n\r\n${body}`;
}
/** A header in it means something to node:http's parser, and another nothing. */
const BASE = request(['Connection: close', 'X-A: b c', LENGTH]);

/** What stands before a version, and behind a path. */
const PATHS = ['/', '//x', '/a#b?c', '/%00', '*', 'http://x/', ' /', '/\xe9', '/\t', '/\x7f'];
const VERSIONS = [
  'HTTP/1.0',
  'HTTP/1.2',
  'HTTP/2.0',
  'http/1.1',
  'ICE/1.1',
  'HTTP/1.1 ',
  'HTTP/1.1\nX: y',
  '',
];
const STARTS = [
  ...PATHS.map((path) => `POST ${path} HTTP/1.1`),
  ...VERSIONS.map((version) => `POST / ${version}`),
  ...['post / HTTP/1.1', 'GET / HTTP/1.1', 'POST /', '\r\nPOST / HTTP/1.1'],
];

const VALUES: Record<string, readonly string[]> = {
  'Content-Length': [
    '17',
    '017',
    '+17',
    '-17',
    '17,17',
    '0x11',
    '1 7',
    '17.0',
    '1e1',
    '',
    '16',
    '18',
    '17 ',
    '\t17',
    '17\t',
  ],
  'Content-Length ': ['17'],
  'Content-Length\t': ['17'],
  Content_Length: ['9'],
  'Transfer-Encoding': ['chunked', 'identity', '', '\x0bchunked', 'gzip, chunked'],
  'Transfer-Encoding ': ['chunked'],
  Connection: [
    'close',
    'Keep-Alive',
    'close, x',
    'keep-alive, close',
    'upgrade',
    '',
    'TE',
    'close  ',
    'close\t',
  ],
  'Proxy-Connection': ['close', 'keep-alive'],
  Upgrade: ['h2c'],
  Expect: ['100-continue', 'x'],
  Host: ['y', ''],
  ' Host': ['y'],
  'X-A': ['b', '', 'b  ', 'b\t c \t', '\xe9', '\x7f', '\x0b', '\0', 'b\rX-B: c', 'b\nX-B: c', 'b\r\r', 'b\n'],
};
const NAMES = [
  ...[
    '__proto__',
    'constructor',
    'toString',
    'hasownproperty',
    'Set-Cookie',
    'Cookie',
    'Keep-Alive',
    'Trailer',
  ],
  ...[
    'TE',
    'HTTP2-Settings',
    'Age',
    'Date',
    'Referer',
    'HOST',
    "!#$%&'*+-.^_`|~",
    '"X"',
    'X(A)',
    'X A',
    'X\0A',
    'X-\xe9',
  ],
];
const LINES = [
  ...Object.entries(VALUES).flatMap(([name, values]) => values.map((value) => `${name}: ${value}`)),
  ...NAMES.map((name) => `${name}: x`),
  ...['x-a:b', ' folded', '\tfolded', ':', ': b', 'X-A'],
];

const SNIPPETS = [
  '\r\n',
  '\n\n',
  '\r\r\n',
  '\r\n ',
  '\n ',
  '\r\n\r\n',
  '\r\nA:b',
  '\r\n:',
  ' : ',
  '\r\nHost: y',
];

/** Two odd lines together, then a request with each byte in turn replaced, removed, or with another before it. */
function* cases(): Generator<string> {
  for (const start of STARTS) yield request([LENGTH], start);
  for (const one of LINES) {
    yield request([one]);
    for (const other of LINES) yield request([one, other]);
  }
  for (let at = 0; at <= BASE.length; at++) {
    const [head, tail] = [BASE.slice(0, at), BASE.slice(at)];
    yield head + tail.slice(1);
    for (const snippet of SNIPPETS) yield head + snippet + tail;
    for (let code = 0; code < 256; code++) {
      const byte = String.fromCharCode(code);
      yield head + byte + tail.slice(1);
      yield head + byte + tail;
    }
  }
}

/** A connection in memory. */
class Wire extends Duplex {
  readonly asked: { request: IncomingMessage; response: ServerResponse; body: Buffer[] }[] = [];
  /** What node:http wrote, and that it could not read what came. */
  said = '';
  override _read(): void {}
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.said += String(chunk);
    done();
  }
}

function createReference(): (bytes: Buffer) => Wire {
  const server = createServer({ maxHeaderSize: 16 * 1024, requireHostHeader: false }, (request, response) => {
    const body: Buffer[] = [];
    (request.socket as unknown as Wire).asked.push({ request, response, body });
    request.on('data', (chunk: Buffer) => body.push(chunk));
  });
  server.maxHeadersCount = 0;
  server.on('clientError', ({ message }, socket) => {
    (socket as unknown as Wire).said += message;
  });
  return (bytes) => {
    const wire = new Wire();
    server.emit('connection', wire);
    wire.emit('data', bytes);
    return wire;
  };
}

function isSame(read: NonNullable<ReturnType<Read>>, { asked, said }: Wire): boolean {
  const [only] = asked;
  if (only === undefined || asked.length > 1 || said !== '') return false;
  const { request, response, body } = only;
  return (
    request.complete &&
    request.method === 'POST' &&
    request.url === read.url &&
    isDeepStrictEqual({ ...request.headers }, { ...read.headers }) &&
    Buffer.concat(body).equals(read.body) &&
    response.shouldKeepAlive === read.isKept
  );
}

/** How many of the cases `read` takes, and the first that node:http reads in another way. */
async function compare(read: Read): Promise<{ all: number; taken: number; other?: string }> {
  const ask = createReference();
  let all = 0;
  let taken = 0;
  let open: { text: string; request: NonNullable<ReturnType<Read>>; wire: Wire }[] = [];
  const judge = async (): Promise<string | undefined> => {
    // Bodies come with the next turn.
    await turn();
    const other = open.find(({ request, wire }) => !isSame(request, wire))?.text;
    for (const { wire } of open) wire.destroy();
    open = [];
    return other;
  };
  for (const text of cases()) {
    all++;
    const bytes = Buffer.from(text, 'latin1');
    const request = read(bytes);
    if (request === undefined) continue;
    taken++;
    open.push({ text, request, wire: ask(bytes) });
    if (open.length < 100) continue;
    const other = await judge();
    if (other !== undefined) return { all, taken, other };
  }
  const other = await judge();
  return { all, taken, ...(other !== undefined && { other }) };
}

describe('a request that is read by hand', () => {
  it('is what node:http reads, whatever byte or header is odd', async () => {
    const { all, taken, other } = await compare(readPlainRequest);
    assert.equal(other, undefined);
    assert.ok(taken > 5_000 && all - taken > 50_000, `${taken} of ${all}`);
  });

  describe('is not, and the comparison says so,', () => {
    const SOURCE = readFileSync(join(PROJECT_ROOT, 'src/server/plain_request.ts'), 'utf8');
    const folder = mkdtempSync(join(tmpdir(), 'sluice-ways-'));
    after(() => rmSync(folder, { recursive: true }));
    const guards: Record<string, readonly [from: string, to: string]> = {
      'where any method is taken': ['/^POST ', '/^[A-Za-z]+ '],
      'where any path is taken': ['(\\/[!-~]*)', '([^ \\r\\n]+)'],
      'where any version is taken': ['HTTP\\/1\\.1', 'HTTP\\/[0-9]\\.[0-9]'],
      'where a line may end in a line feed': ['[ -~]*\\r\\n)+', '[ -~]*\\r?\\n)+'],
      'where any name is taken': ["[!#$%&'*+.^_`|~0-9A-Za-z-]+:", '[^:\\r\\n]+:'],
      'where any value is taken': [':[ -~]*', ':[^\\r\\n]*'],
      'where any number is a length': ['/^[0-9]{1,4}$/', '/^.+$/'],
      'where there may be more than the length says': ['!== bytes.length', '> bytes.length'],
      'where there may be less than the length says': ['!== bytes.length', '< bytes.length'],
      'where a header may come twice': [
        'before.\n    if (headers[name] !== undefined) return undefined;',
        '',
      ],
      'where chunks have a length': ["'transfer-encoding', ", ''],
      'where nothing is expected': ["'expect', ", ''],
      'where a proxy says how to go on': [", 'proxy-connection'", ''],
      'where a list is a text': [", 'set-cookie'", ''],
      'where a connection may be anything': ["told !== 'keep-alive' && told !== 'close'", 'false'],
      'where a value keeps its last spaces': ['.trim()', '.trimStart()'],
      'where a tab is a space': [':[ -~]*', ':[\\t -~]*'],
    };
    let copies = 0;
    for (const [what, [from, to]] of Object.entries(guards))
      it(what, async () => {
        const parts = SOURCE.split(from);
        assert.equal(parts.length, 2, 'the guard stands there once');
        const file = join(folder, `copy_${++copies}.mts`);
        writeFileSync(file, parts.join(to));
        const copy: { readPlainRequest: Read } = await import(pathToFileURL(file).href);
        assert.notEqual((await compare(copy.readPlainRequest)).other, undefined);
      });
  });
});

/** Far longer than an answer takes: what is never whole is refused by then. */
const TIMES = { headersMs: 1_500, requestMs: 1_500, checkMs: 100 };
const NEXT = request([LENGTH, 'X-Request-Id: next', 'Connection: close']);

/** All that comes until the server closes. With the first bytes of an answer the connection is asked once more. */
function transcript(port: number, pieces: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    socket.on('connect', async () => {
      for (const piece of pieces) {
        socket.write(piece, 'latin1');
        await turn();
      }
    });
    socket.once('data', () => socket.write(NEXT));
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    // A connection that is closed may be reset by what it is asked then.
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(Buffer.concat(chunks).toString()));
  });
}

const withoutNames = (text: string) =>
  text.replace(/Date: [^\r]+/g, 'Date').replace(/[0-9a-f]{12}-[0-9a-z]+/g, 'id');

describe('over connections', () => {
  const log = memoryLog();
  const routes = new ClaimRoutes(memoryPorts()).routes();
  const servers = {
    short: new HttpServer(new Router(routes, log), log, TIMES),
    // Without the mark all connections are node:http's.
    node: new HttpServer(
      new Router(
        routes.map(({ isBrief: _, ...route }) => route),
        log,
      ),
      log,
      TIMES,
    ),
  };
  const ports = { short: 0, node: 0 };
  const ofNode = { short: 0, node: 0 };
  function count(message: unknown): void {
    const { localPort } = (message as { socket: Socket }).socket;
    if (localPort === ports.short) ofNode.short++;
    if (localPort === ports.node) ofNode.node++;
  }
  before(async () => {
    ports.short = await servers.short.listen(0, '127.0.0.1');
    ports.node = await servers.node.listen(0, '127.0.0.1');
    subscribe('http.server.request.start', count);
  });
  after(async () => {
    unsubscribe('http.server.request.start', count);
    await Promise.all([servers.short.close(), servers.node.close()]);
  });

  it('both ways answer the same, and keep or close the same connections', async () => {
    const plain = request([LENGTH]);
    const get = 'GET /v1/claims/x HTTP/1.1\r\nHost: x\r\n\r\n';
    const asked: string[][] = [
      ...STARTS.map((start) => [request([LENGTH], start.replace(/ \/ /, ' /v1/pools/p/claims '))]),
      ...LINES.flatMap((line) => [[request([line])], [request([line, LENGTH])], [request([LENGTH, line])]]),
      ...SNIPPETS.map((snippet) => [plain.replace('\r\nHost', `${snippet}\r\nHost`)]),
      ...[...plain].flatMap((_, at) => (at % 9 === 0 ? [[plain.slice(0, at), plain.slice(at)]] : [])),
      ...[...plain].flatMap((_, at) => (at % 40 === 20 ? [[plain.slice(0, at)]] : [])),
      ...[[plain + plain], [plain + get + plain], [plain, plain, plain], [plain, get, plain], [get, plain]],
      ...[
        [plain, plain.slice(0, 50), plain.slice(50) + get],
        [plain + plain.slice(0, 50), plain.slice(50)],
      ],
      ...[
        [request([LENGTH], START, `${BODY}${plain}`)],
        [request(['Content-Length: 4097'], START, 'x'.repeat(4097))],
      ],
      ...[
        [request([`X-A: ${'b'.repeat(7_900)}`, LENGTH])],
        [request([`X-A: ${'b'.repeat(17_000)}`, LENGTH])],
      ],
    ];
    const answers = await Promise.all(
      asked.map(async (pieces) => {
        const both = [transcript(ports.short, pieces), transcript(ports.node, pieces)];
        const [short = '', node = ''] = (await Promise.all(both)).map(withoutNames);
        return { pieces, short, node };
      }),
    );
    for (const { pieces, short, node } of answers) assert.equal(short, node, JSON.stringify(pieces));
    assert.ok(answers.filter(({ short }) => short.includes('HTTP/1.1 201')).length > 50);
    assert.ok(ofNode.short < ofNode.node - 50, `node:http had ${ofNode.short} and ${ofNode.node} requests`);
  });
});
