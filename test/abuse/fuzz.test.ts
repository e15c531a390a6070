// A short fuzz with every run, and that the fuzzer would notice: an oracle that lets everything pass proves nothing.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { after, before, describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Answer, openClient } from '../server/support.ts';
import { chooseSeed } from '../support/load.ts';
import { type FuzzCase, makeCase } from './fuzz/case.ts';
import { inconsistencies } from './fuzz/consistency.ts';
import { joinRuns, runsOf } from './fuzz/join.ts';
import { complaintsOf } from './fuzz/oracle.ts';
import { fuzz } from './fuzz/run.ts';
import { exchangeCase, takeApart } from './fuzz/wire.ts';
import { type NodePlace, startNodePlace } from './node_place.ts';

const REQUESTS = 1_000;
const FUZZ = fileURLToPath(new URL('./fuzz.ts', import.meta.url));

describe('a fuzz of the Node server', () => {
  let place: NodePlace;
  before(async () => {
    place = await startNodePlace();
  });
  after(async () => assert.equal(await place?.stop(), 0, 'it ends when it is told to'));

  const seed = chooseSeed();
  it(`finds nothing in ${REQUESTS} requests (SLUICE_TEST_SEED=${seed})`, async () => {
    const { failures, statuses, requests } = await fuzz(place, { seed, requests: REQUESTS });
    assert.deepEqual(failures, [], `seed ${seed}`);
    assert.equal(requests, REQUESTS);
    // A fuzz that reaches only one door, or is refused at every door, proves nothing.
    for (const status of ['200', '201', '400', '401', '404', '405', '413', '415', '422'])
      assert.ok((statuses[status] ?? 0) > 0, `no ${status} in ${JSON.stringify(statuses)}`);
  });

  it('makes the same case of the same number, and others of others', async () => {
    const bytes = async (index: number, from = 5) =>
      // Signatures and times are of now.
      (await makeCase(from, index, place)).what;
    const twice = await Promise.all([3, 3].map((index) => bytes(index)));
    assert.equal(twice[0], twice[1]);
    const many = await Promise.all(Array.from({ length: 20 }, (_, index) => bytes(index)));
    assert.ok(new Set(many).size > 10);
    assert.notDeepEqual(many, await Promise.all(Array.from({ length: 20 }, (_, index) => bytes(index, 6))));
  });

  it('would see a slot that is taken without a claim, and a claim whose slot is on sale', async () => {
    const db1 = await openClient(place.databaseUrls()[0]);
    const urls = place.databaseUrls() as [string, string];
    assert.deepEqual(await inconsistencies(urls), []);
    await db1.query(`update public.inventory_slots set status = 'CONSUMED' where pool_id = 'abuse-members'`);
    await db1.query(`update public.inventory_slots s set status = 'AVAILABLE'
      from public.claims c where c.slot_id = s.id and c.freed_at is null`);
    await db1.end();
    const found = (await inconsistencies(urls)).join('\n');
    assert.match(found, /a slot is taken and no live claim has it: 1/);
    assert.match(found, /a live claim has a slot that is on sale/);
  });
});

describe('the oracle of the fuzzer', () => {
  const asked: FuzzCase = {
    index: 0,
    what: 'x',
    pieces: [],
    methods: ['GET'],
    isFramed: true,
    ending: 'close',
  };
  const json = { error: { code: 'not_found', message: 'm', hint: 'h', request_id: 'r' } };
  const good: Answer = { status: 404, headers: { 'x-request-id': 'r' }, text: JSON.stringify(json), json };
  const judge = (change: Partial<Answer>, more: object = {}) =>
    complaintsOf(asked, { answers: [{ ...good, ...change }], rest: '', isHung: false, ...more }, [
      'a-secret',
    ]).join();

  it('has nothing to say to a refusal', () => assert.equal(judge({}), ''));
  it('complains about 500, and about 503 for a database that is up', () => {
    assert.match(judge({ status: 500 }), /answered 500/);
    assert.match(judge({ status: 503 }), /answered 503 not_found/);
  });
  it('complains about another shape, a secret, half an answer, none, and one without an end', () => {
    assert.match(judge({ json: undefined, text: 'Not Found' }), /not one of our refusals/);
    assert.match(judge({ status: 200, text: 'a-secret' }), /secret/);
    assert.match(judge({}, { rest: 'HTTP/1.1 200 OK\r\n' }), /in pieces/);
    assert.match(judge({}, { answers: [] }), /gave 0 answers to 1/);
    assert.match(judge({}, { answers: [good, good] }), /gave 2 answers to 1/);
    assert.match(judge({}, { isHung: true }), /without an end/);
  });
  it('takes answers apart by their lengths, without a body for HEAD', () => {
    const one = 'HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n';
    const raw = Buffer.from(`HTTP/1.1 100 Continue\r\n\r\n${one}${one}{}HTTP/1.1 2`);
    const { answers, rest } = takeApart(raw, ['HEAD', 'GET']);
    assert.deepEqual([answers.map(({ text }) => text), rest], [['', '{}'], 'HTTP/1.1 2']);
  });

  // Seed 12, case 59111: the second answer came in a packet of its own, and the fuzzer had left.
  for (const [method, heard] of [
    ['HEAD', 2],
    ['GET', 1],
  ] as const)
    it(`is over when a stream has begun, and goes on after its HEAD: ${heard} answers after ${method}`, async (t) => {
      const [head, next] = [
        'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n',
        'HTTP/1.1 204 No Content\r\n\r\n',
      ];
      assert.deepEqual(await hear(t, [method, 'GET'], head, (socket) => socket.end(next)), [heard, false]);
    });

  // Seed 13, case 98489: a long answer before it cut the head of the stream in two.
  it('is over when a stream has begun whose head came in two packets', async (t) => {
    const [head, next] = ['HTTP/1.1 200 OK\r\nContent-Type: text/event-', 'stream\r\n\r\n'];
    assert.deepEqual(await hear(t, ['GET'], head, (socket) => socket.write(next)), [1, false]);
  });

  /** How many answers the fuzzer hears of a server that goes on later, and whether it waited in vain. */
  const hear = async (
    t: TestContext,
    methods: readonly string[],
    head: string,
    goOn: (socket: Socket) => void,
  ): Promise<[number, boolean]> => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.write(head);
      setTimeout(goOn, 100, socket);
    });
    t.after(() => server.close());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const { answers, isHung } = await exchangeCase({ ...asked, methods }, port);
    return [answers.length, isHung];
  };
});

describe('npm run fuzz', () => {
  const run = (...args: string[]) =>
    spawnSync(process.execPath, ['--import', 'tsx', FUZZ, ...args], { encoding: 'utf8' });

  it('explains itself, and refuses what it does not understand', () => {
    const help = run('--help');
    assert.deepEqual([help.status, /--seed S/.test(help.stdout)], [0, true]);
    const refused = run('--requests', 'many');
    assert.deepEqual([refused.status, /hint:/.test(refused.stderr)], [2, true], refused.stderr);
  });
});

it('several runs of a fuzz are one: counts and failures add up, and of memory the run counts that grew most', () => {
  const run = (seed: number, endMb: number, failures: { what: string; complaints: string[] }[] = []) =>
    runsOf({
      ...{ seed, requests: 10, statuses: { 200: 7, [seed]: 3 }, seconds: 1 },
      ...{ rss_mb: { warm: 100, end: endMb }, failures },
    });
  const failure = { what: 'x', complaints: ['y'] };
  const both = joinRuns(run(1, 150, [failure]), run(2, 120));
  assert.deepEqual(both, {
    ...{ seeds: [1, 2], requests: 20, statuses: { 200: 14, 1: 3, 2: 3 }, seconds: 2 },
    ...{ rss_mb: { warm: 100, end: 150 }, failures: [failure] },
  });
  assert.equal(joinRuns(run(1, 120), run(2, 150)).rss_mb.end, 150);
  assert.throws(() => joinRuns(both, run(1, 100)), /seed 1 of these product files is kept already/);
});
