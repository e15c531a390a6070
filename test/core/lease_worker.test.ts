// The lease worker on lanes that live in memory.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Outcomes } from '#core/lease_worker.ts';
import { Targets } from '#core/target.ts';
import { gate, never, turns, World } from './lease_world.ts';

test('a lane is finished and taken from again while another lane still works', async () => {
  const world = new World();
  const slow = gate();
  world.before = async (group) => {
    if (group.items[0]?.lane === 'slow') await slow.passed;
  };
  world.fill('slow', 3);
  world.fill('quick', 3);
  const stop = new AbortController();
  const running = world.worker.run(stop.signal);
  await turns();
  assert.equal(world.count('quick'), 3);
  world.fill('quick', 2);
  world.worker.wake();
  await turns();
  assert.deepEqual([world.count('quick'), world.count('slow')], [5, 0]);
  slow.open();
  stop.abort();
  await running;
  assert.equal(world.count('slow'), 3);
});

test('lanes of one target get equal shares of its room, and take turns at what division leaves', async () => {
  const world = new World();
  world.limits.set('ledger', 10);
  for (const lane of ['a', 'b', 'c']) world.fill(lane, 100, { targets: ['ledger'] });
  await world.worker.step(never);
  await world.worker.step(never);
  assert.deepEqual(world.takes, [
    [
      { lane: 'a', wanted: 4 },
      { lane: 'b', wanted: 4 },
      { lane: 'c', wanted: 2 },
    ],
    [
      { lane: 'b', wanted: 4 },
      { lane: 'c', wanted: 4 },
      { lane: 'a', wanted: 2 },
    ],
  ]);
});

test('nothing is taken of a lane whose target has no room, until an item of it is finished', async () => {
  const world = new World();
  world.limits.set('hook', 2);
  const [first, rest] = [gate(), gate()];
  world.before = async (group) => {
    if (group.items.length === 2) {
      await first.passed;
      const one = group.items.slice(0, 1);
      await group.finish(one, async () => world.finished.push(...one));
    }
    await rest.passed;
  };
  world.fill('hook', 5);
  const stop = new AbortController();
  const running = world.worker.run(stop.signal);
  await turns();
  assert.equal(world.waiting.length, 3);
  first.open();
  await turns();
  const left = world.waiting.length;
  rest.open();
  await turns();
  stop.abort();
  await running;
  assert.equal(left, 2, 'the room of one finished item was used');
  assert.equal(world.count('hook'), 5);
});

test('a lane that cannot finish has its own limit full, and leaves the room of its target to others', async () => {
  const world = new World();
  world.limits.set('ledger', 4);
  const stuck = gate();
  world.before = async (group) => {
    if (group.items[0]?.lane !== 'stuck') return;
    await group.finish(group.items, () => stuck.passed);
    world.finished.push(...group.items);
  };
  world.fill('stuck', 20, { targets: ['ledger'], most: 2 });
  const stop = new AbortController();
  const running = world.worker.run(stop.signal);
  await turns(60);
  assert.equal(world.waiting.length, 16, 'it has taken as much as its target lets be under way');
  world.fill('free', 6, { targets: ['ledger'] });
  world.worker.wake();
  await turns(60);
  assert.deepEqual([world.count('free'), world.waiting.length], [6, 16]);
  stuck.open();
  await turns(200);
  stop.abort();
  await running;
  assert.equal(world.count('stuck'), 20);
  assert.equal(world.targets.of('ledger').room, 4, 'and all room is back');
});

test('nothing is taken of a lane one of whose targets is down', async () => {
  const world = new World();
  world.fill('hooked', 2, { targets: ['hook', 'ledger'] });
  world.fill('plain', 2, { targets: ['ledger'] });
  world.targets.of('hook').breaker.outage();
  const report = await world.worker.step(never);
  assert.deepEqual([world.count('hooked'), world.count('plain'), report.total], [0, 2, 2]);
  assert.ok(report.pausedUntilMs > world.nowMs);
});

test('one suspect at a time is taken, alone, and the next as soon as it has ended', async () => {
  const world = new World();
  world.fill('pool', 3, { isSuspect: true });
  const sizes: number[] = [];
  let atOnce = 0;
  world.before = async (group) => {
    sizes.push(group.items.length);
    assert.equal(++atOnce, 1);
    await turns(2);
    atOnce--;
  };
  const report = await world.worker.drain(never);
  assert.deepEqual([report.total, sizes, world.count('pool')], [3, [1, 1, 1], 3]);
});

test('a suspect has its turn while its lane has a backlog', async () => {
  const world = new World();
  world.limits.set('pool', 2);
  world.fill('pool', 10);
  world.fill('pool', 1, { isSuspect: true });
  await world.worker.drain(never);
  const turn = world.finished.findIndex(({ isSuspect }) => isSuspect);
  assert.equal(world.finished.length, 11);
  assert.ok(turn < 2, `it was number ${turn + 1}`);
});

test('the lanes are looked for again when a kept list gives nothing', async () => {
  const world = new World();
  const stop = new AbortController();
  world.fill('a', 1);
  const running = world.worker.run(stop.signal);
  await turns();
  world.fill('b', 1);
  world.worker.wake();
  await turns();
  assert.equal(world.count('b'), 1);
  stop.abort();
  await running;
});

test('an idle worker looks once a round', async () => {
  const world = new World();
  await world.worker.step(never);
  assert.deepEqual([world.looks, world.takes.length], [1, 0]);
});

test('heartbeats extend what is held and nothing that is finished; a finish waits for the beat on the wire', async () => {
  const world = new World();
  const [beat, hold] = [gate(), gate()];
  world.extending = beat.passed;
  world.fill('pool', 2);
  let isFinishing = false;
  world.before = async (group) => {
    await hold.passed;
    const [one] = group.items;
    isFinishing = true;
    if (one) await group.finish([one], async () => world.finished.push(one));
    isFinishing = false;
    world.extended.length = 0;
    while (world.extended.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  };
  const step = world.worker.step(never);
  while (world.extended.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  assert.equal(world.extended[0]?.length, 2);
  hold.open();
  await turns();
  assert.deepEqual([isFinishing, world.finished.length], [true, 0]);
  beat.open();
  await step;
  assert.deepEqual(
    world.extended[0]?.map(({ n }) => n),
    [1],
  );
});

test('a group that fails leaves the others to end, and the step tells of it', async () => {
  const world = new World();
  world.fill('bad', 1);
  world.fill('good', 1);
  world.before = async (group) => {
    if (group.items[0]?.lane === 'bad') throw new Error('planted');
    await turns(3);
  };
  await assert.rejects(world.worker.step(never), /planted/);
  assert.equal(world.count('good'), 1);
  assert.equal(world.targets.of('bad').isIdle, true, 'its room is free again');
});

test('a running worker logs a failure and goes on', async () => {
  const world = new World();
  world.fill('bad', 1);
  let isBad = true;
  world.before = async () => {
    if (isBad) throw new Error('planted');
  };
  const stop = new AbortController();
  const seen: Outcomes[] = [];
  const running = world.worker.run(stop.signal, (outcomes) => seen.push(outcomes));
  await turns();
  isBad = false;
  world.fill('good', 1);
  world.worker.wake();
  await turns();
  stop.abort();
  await running;
  assert.deepEqual(seen, [{ done: 1 }]);
  assert.deepEqual(
    world.log.lines.map(({ message }) => message),
    ['worker step failed'],
  );
});

test('a running worker has one line in ten seconds for failures alike, with its name', async () => {
  const world = new World();
  const stop = new AbortController();
  let outage = '';
  world.looking = async () => {
    if (outage !== '') throw new Error(outage);
  };
  const running = world.worker.run(stop.signal);
  await turns();
  const told: unknown[] = [];
  const startedMs = world.nowMs;
  for (const [next, afterMs] of [
    ['gone', 0],
    ['gone', 1_000],
    ['starting up', 2_000],
    ['gone', 10_000],
    ['', 11_000],
  ] as const) {
    outage = next;
    world.nowMs = startedMs + afterMs;
    world.worker.wake();
    await turns();
    told.push(
      world.log.lines.splice(0).map(({ fields }) => [fields?.worker, `${fields?.cause}`, fields?.untold]),
    );
  }
  stop.abort();
  await running;
  assert.deepEqual(told, [
    [['test', 'Error: gone', undefined]],
    [],
    [['test', 'Error: starting up', undefined]],
    [['test', 'Error: gone', 1]],
    [],
  ]);
});

test('targets that no lane needs are forgotten when nothing is under way for them', async () => {
  const world = new World();
  const changes: [string, boolean][] = [];
  const targets = new Targets({
    now: () => 0,
    limitOf: () => 1,
    onChange: (name, isDown) => changes.push([name, isDown]),
  });
  targets.of('down').breaker.outage();
  targets.of('busy').breaker.outage();
  targets.of('busy').enter(1);
  targets.keepOnly(() => false);
  assert.deepEqual(changes, [
    ['down', true],
    ['busy', true],
    ['down', false],
  ]);
  assert.equal(world.targets.pausedUntilMs, 0);
});

test('a drain goes on with what had no room when it took, though its group ended before the round did', async () => {
  const world = new World();
  world.limits.set('a', 1);
  world.fill('a', 2);
  // A lane of which nothing can be taken now: its items are hidden.
  world.fill('hidden', 1);
  world.hidden = 'hidden';
  const { open, passed } = gate();
  world.before = () => passed;
  // The third take is the last of the second round.
  world.taking = async () => {
    if (world.takes.length < 3) return;
    open();
    await turns();
  };
  assert.equal((await world.worker.drain(never)).total, 2);
});
