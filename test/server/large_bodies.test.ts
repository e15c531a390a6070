import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, describe, it } from 'node:test';
import { type HttpRequest, type HttpResponse, jsonResponse, Router } from '#core/router.ts';
import { Admission } from '../../src/server/admission.ts';
import { HttpServer, type Timeouts } from '../../src/server/http.ts';
import { LargeBodies } from '../../src/server/large_bodies.ts';
import { memoryLog } from '../core/support.ts';
import { ask, assertRefusal } from './support.ts';

const KB = 1024;
const never = new AbortController().signal;

describe('large bodies', () => {
  it('have their turn as long as there is room, and the rest follows in the order in which it came', async () => {
    const bodies = new LargeBodies({ roomBytes: 10 });
    const order: string[] = [];
    const enter = async (name: string, bytes: number): Promise<() => void> => {
      const leave = await bodies.enter('one endpoint', bytes, never);
      order.push(name);
      return leave;
    };
    const first = await enter('first', 6);
    const second = enter('second', 6);
    const third = enter('third', 1);
    await turn();
    assert.deepEqual(order, ['first'], 'a small one does not overtake the one that waits');
    first();
    first();
    (await second)();
    await third;
    assert.deepEqual(order, ['first', 'second', 'third']);
  });

  it('of one endpoint do not hold up those of another', async () => {
    const bodies = new LargeBodies({ roomBytes: 10 });
    const leave = await bodies.enter('crowd', 10, never);
    const order: string[] = [];
    const waiting = ['crowd', 'crowd', 'crowd', 'other'].map(async (target) => {
      const end = await bodies.enter(target, 10, never);
      order.push(target);
      end();
    });
    leave();
    await Promise.all(waiting);
    assert.deepEqual(order, ['crowd', 'other', 'crowd', 'crowd']);
  });

  it('larger than all the room have their turn alone', async () => {
    const bodies = new LargeBodies({ roomBytes: 10 });
    const leave = await bodies.enter('a', 1, never);
    let hasBegun = false;
    const huge = bodies.enter('a', 100, never).then((end) => {
      hasBegun = true;
      return end;
    });
    await turn();
    assert.equal(hasBegun, false);
    leave();
    (await huge)();
    await bodies.enter('a', 10, never);
  });

  it('rest after each turn for as long as it took, and a quarter of a second at most', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    let nowMs = 0;
    const bodies = new LargeBodies({ roomBytes: 10, now: () => nowMs });
    for (const [tookMs, restMs] of [
      [40, 40],
      [9_000, 250],
    ] as const) {
      const leave = await bodies.enter('a', 10, never);
      let hasBegun = false;
      const next = bodies.enter('b', 10, never).then((end) => {
        hasBegun = true;
        return end;
      });
      nowMs += tookMs;
      leave();
      t.mock.timers.tick(restMs - 1);
      await turn();
      assert.equal(hasBegun, false);
      t.mock.timers.tick(1);
      (await next)();
      t.mock.timers.tick(1);
    }
  });

  it('that wait too long, or whose sender leaves, give up their place', async () => {
    const bodies = new LargeBodies({ roomBytes: 10, patienceMs: 10, now: () => 0 });
    const leave = await bodies.enter('a', 10, never);
    await assert.rejects(bodies.enter('a', 10, never), ({ kind }) => kind.code === 'overloaded');
    const sender = new AbortController();
    const left = bodies.enter('a', 10, sender.signal);
    sender.abort();
    await assert.rejects(left);
    leave();
    await bodies.enter('a', 10, never);
  });
});

describe('the HTTP adapter, beside large bodies', () => {
  const open: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of open.splice(0)) await close();
  });

  /** A server whose large route answers when it is told to. */
  async function start(bodies: LargeBodies, times: Partial<Timeouts> = {}) {
    const inside = new EventEmitter();
    const answers: (() => void)[] = [];
    const large = {
      method: 'POST',
      path: '/webhooks/:endpoint',
      maxBodyBytes: 1024 * KB,
      checkTarget: async () => void inside.emit('asked'),
      handle: (_: HttpRequest): Promise<HttpResponse> =>
        new Promise((resolve) => {
          answers.push(() => resolve(jsonResponse(200, {})));
          inside.emit('entered');
        }),
    };
    const log = memoryLog();
    const server = new HttpServer(new Router([large], log), log, times, new Admission(20, {}, bodies));
    const port = await server.listen(0);
    open.push(() => server.close());
    const post = (bytes: number, headers = {}) =>
      ask(`http://127.0.0.1:${port}/webhooks/x`, { method: 'POST', body: 'x'.repeat(bytes), headers });
    return { post, port, inside, answers };
  }

  it('takes one after the other, and small bodies meanwhile', async () => {
    const { post, inside, answers } = await start(new LargeBodies({ roomBytes: 100 * KB }));
    const entered = once(inside, 'entered');
    const first = post(80 * KB);
    await entered;
    const second = post(80 * KB);
    const small = once(inside, 'entered');
    const third = post(KB);
    await small;
    assert.equal(answers.length, 2, 'the second large one was not let in');
    const next = once(inside, 'entered');
    for (const answer of answers.splice(0)) answer();
    assert.equal((await first).status, 200);
    assert.equal((await third).status, 200);
    await next;
    answers[0]?.();
    assert.equal((await second).status, 200);
  });

  it('refuses with 503 and Retry-After what would wait too long', async () => {
    const { post, inside, answers } = await start(new LargeBodies({ roomBytes: 100 * KB, patienceMs: 50 }));
    const entered = once(inside, 'entered');
    const first = post(80 * KB);
    await entered;
    const late = await post(80 * KB);
    assertRefusal(late, 503, 'overloaded');
    assert.ok(late.headers['retry-after']);
    answers[0]?.();
    assert.equal((await first).status, 200);
  });

  it('lets a small one without a length in at once', { timeout: 10_000 }, async () => {
    const { post, port, inside, answers } = await start(
      new LargeBodies({ roomBytes: 100 * KB, patienceMs: 60_000 }),
    );
    const entered = once(inside, 'entered');
    const first = post(80 * KB);
    await entered;
    const asked = once(inside, 'asked');
    const socket = connect(port, '127.0.0.1');
    socket.write(
      `POST /webhooks/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1400\r\n${'x'.repeat(5 * KB)}\r\n`,
    );
    // Not before: a body that comes in one read is not paused.
    await asked;
    const small = once(inside, 'entered');
    socket.write('0\r\n\r\n');
    await small;
    for (const answer of answers.splice(0)) answer();
    assert.equal((await first).status, 200);
    socket.destroy();
  });

  it('gives those without a length their turn for what they hold', { timeout: 10_000 }, async () => {
    const { post, inside, answers } = await start(
      new LargeBodies({ roomBytes: 400 * KB, patienceMs: 60_000 }),
    );
    const both = [1, 2].map(() => post(80 * KB, { 'transfer-encoding': 'chunked' }));
    while (answers.length < 2) await once(inside, 'entered');
    for (const answer of answers) answer();
    for (const one of both) assert.equal((await one).status, 200);
  });

  it('gives those without a length a larger turn as they grow, and the next ones theirs afterwards', async () => {
    const { post, inside, answers } = await start(new LargeBodies({ roomBytes: 1000 * KB }));
    inside.on('entered', () => answers.splice(0)[0]?.());
    const bodies = Array.from({ length: 4 }, () => post(900 * KB, { 'transfer-encoding': 'chunked' }));
    assert.deepEqual(
      (await Promise.all(bodies)).map(({ status }) => status),
      [200, 200, 200, 200],
    );
  });

  it('takes the turn from a sender that is too slow for the length it announced', {
    timeout: 10_000,
  }, async () => {
    const bodies = new LargeBodies({ roomBytes: 100 * KB, patienceMs: 60_000 });
    const never = { requestMs: 600_000, slowMs: 600_000 };
    const { post, port, inside, answers } = await start(bodies, { ...never, checkMs: 20 });
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    const refused = once(socket, 'data');
    socket.write(
      `POST /webhooks/x HTTP/1.1\r\nHost: x\r\nContent-Length: ${80 * KB}\r\n\r\n${'x'.repeat(10 * KB)}`,
    );
    const entered = once(inside, 'entered');
    const next = post(80 * KB);
    assert.match(String((await refused)[0]), /^HTTP\/1\.1 408 /);
    socket.destroy();
    await entered;
    answers[0]?.();
    assert.equal((await next).status, 200);
  });

  it('lets the next one in when a sender leaves in the middle of its body', async () => {
    const { post, port, inside, answers } = await start(new LargeBodies({ roomBytes: 100 * KB }));
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    socket.write(
      `POST /webhooks/x HTTP/1.1\r\nHost: x\r\nContent-Length: ${80 * KB}\r\n\r\n${'x'.repeat(10 * KB)}`,
    );
    const entered = once(inside, 'entered');
    const second = post(80 * KB);
    socket.destroy();
    await entered;
    answers[0]?.();
    assert.equal((await second).status, 200);
  });
});

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
