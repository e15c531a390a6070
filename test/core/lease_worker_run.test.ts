// When a running lease worker looks, rests and ends. The clock stands still unless a test moves it.

import assert from 'node:assert/strict';
import { mock, type TestContext, test } from 'node:test';
import { gate, never, turns, World } from './lease_world.ts';

/** Timers that only a test lets pass. */
function stopTimers(t: TestContext): void {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  t.after(() => mock.timers.reset());
}

async function whileRunning(world: World, during: () => Promise<void>): Promise<void> {
  const stopping = new AbortController();
  const run = world.worker.run(stopping.signal);
  await turns();
  await during();
  // Without a timer that passes: an idle worker ends at once.
  stopping.abort();
  await run;
}

test('an idle worker is woken by a word, rests a quarter of a second without one, and ends at once', async (t) => {
  stopTimers(t);
  const world = new World();
  await whileRunning(world, async () => {
    world.fill('a', 1);
    await turns();
    assert.equal(world.count('a'), 0);
    world.worker.wake();
    await turns();
    assert.equal(world.count('a'), 1);
    world.fill('a', 1);
    mock.timers.tick(249);
    await turns();
    assert.equal(world.count('a'), 1);
    mock.timers.tick(1);
    await turns();
    assert.equal(world.count('a'), 2);
  });
});

test('what comes within the time of gathering is taken together, whatever word comes with it', async (t) => {
  stopTimers(t);
  const world = new World({ gatherMs: 50 });
  world.fill('a', 1);
  await whileRunning(world, async () => {
    assert.equal(world.count('a'), 1, 'the first leaves at once');
    const { length } = world.takes;
    for (let at = 0; at < 3; at++) {
      world.fill('a', 1);
      world.worker.wake();
      mock.timers.tick(10);
      await turns();
    }
    assert.deepEqual([world.count('a'), world.takes.length], [1, length]);
    mock.timers.tick(20);
    await turns();
    assert.deepEqual([world.count('a'), world.takes.length], [4, length + 1]);
  });
});

test('a lane that gave all it was asked for is asked again at once, whatever gathers in the others', async (t) => {
  stopTimers(t);
  const world = new World({ gatherMs: 50 });
  world.fill('a', 5, { most: 2 });
  world.fill('b', 1, { most: 2 });
  await whileRunning(world, async () => {
    assert.deepEqual([world.count('a'), world.count('b')], [5, 1]);
  });
});

test('a lane that is full has its next items as soon as it has room, whatever gathers in the others', async (t) => {
  stopTimers(t);
  const world = new World({ gatherMs: 50 });
  world.limits.set('hook', 1);
  world.fill('a', 3, { targets: ['hook'] });
  world.fill('b', 1);
  // A steady stream: each item of the full lane is followed by one of the other.
  world.before = async ({ items }) => {
    if (items[0]?.lane !== 'a') return;
    await turns(3);
    world.fill('b', 1);
  };
  await whileRunning(world, async () => {
    await turns(60);
    assert.equal(world.count('a'), 3);
  });
});

test('suspects follow each other at once', async (t) => {
  stopTimers(t);
  const world = new World({ gatherMs: 50 });
  world.fill('a', 3, { isSuspect: true });
  await whileRunning(world, async () => {
    await turns(60);
    assert.equal(world.count('a'), 3);
  });
});

test('a worker that gathers ends at once', async (t) => {
  stopTimers(t);
  const world = new World({ gatherMs: 50 });
  world.fill('a', 1);
  await whileRunning(world, async () => assert.equal(world.count('a'), 1));
});

test('a word that comes while it looks is not lost', async (t) => {
  stopTimers(t);
  const world = new World();
  const { open, passed } = gate();
  world.looking = () => passed;
  await whileRunning(world, async () => {
    world.worker.wake();
    open();
    await turns();
    world.looking = async () => undefined;
    assert.ok(world.looks >= 2, 'it looked again instead of resting');
  });
});

test('a database that cannot be read is told with its cause, and asked again a second later', async (t) => {
  stopTimers(t);
  const world = new World();
  const cause = new Error('gone');
  world.looking = async () => {
    if (world.looks === 1) throw cause;
  };
  world.fill('a', 1);
  await whileRunning(world, async () => {
    assert.deepEqual(
      world.log.lines.map(({ level, fields }) => [level, fields?.cause]),
      [['error', cause]],
    );
    mock.timers.tick(999);
    await turns();
    assert.equal(world.count('a'), 0);
    mock.timers.tick(1);
    await turns();
    assert.equal(world.count('a'), 1);
  });
});

test('the list of lanes is believed for a tenth of a second while it gives something', async (t) => {
  stopTimers(t);
  const world = new World();
  world.fill('a', 3, { most: 1 });
  const looksAt: number[] = [];
  world.before = async ({ items }) => {
    looksAt.push(world.looks);
    if (items[0]?.n === 1) world.nowMs += 100;
  };
  await whileRunning(world, async () => assert.equal(world.count('a'), 3));
  assert.equal(looksAt[1], looksAt[0], 'the second item came by the same look');
  assert.ok((looksAt[2] ?? 0) > (looksAt[1] ?? 0), 'the third by another');
});

test('suspects are looked for once a second where there are none, and at once where there was one', async (t) => {
  stopTimers(t);
  const world = new World();
  let asked = 0;
  world.suspecting = async () => void asked++;
  world.fill('a', 5, { most: 1 });
  await whileRunning(world, async () => {
    assert.deepEqual([world.count('a'), asked], [5, 1]);
    world.fill('a', 1);
    world.nowMs += 999;
    world.worker.wake();
    await turns();
    assert.equal(asked, 1);
    world.nowMs += 1;
    world.fill('a', 2, { isSuspect: true });
    world.worker.wake();
    await turns();
    assert.ok(asked >= 3);
    assert.equal(world.count('a'), 8, 'both suspects, one after the other');
  });
});

test('suspects are not asked for where no lane has room', async () => {
  const world = new World();
  let asked = 0;
  world.suspecting = async () => void asked++;
  await world.worker.step(never);
  assert.equal(asked, 0);
});

test('no lane is asked for nothing', async () => {
  const world = new World();
  for (const lane of ['a', 'b', 'c']) world.fill(lane, 1, { targets: ['shared'] });
  world.limits.set('shared', 1);
  await world.worker.step(never);
  assert.deepEqual(
    world.takes.flat().map(({ wanted }) => wanted),
    [1],
  );
});

test('a drain that cannot read the lanes any more waits for what it has under way', async () => {
  const world = new World();
  const { open, passed } = gate();
  let hasEnded = false;
  world.fill('a', 1);
  world.before = async () => {
    await passed;
    hasEnded = true;
  };
  world.looking = async () => {
    if (world.looks > 1) throw new Error('gone');
  };
  const drain = world.worker.drain(never).catch(() => hasEnded);
  await turns();
  open();
  assert.equal(await drain, true);
});

test('what a group has not finished leaves its room with it', async () => {
  const world = new World();
  world.limits.set('a', 2);
  world.fill('a', 2);
  world.before = async () => {
    throw new Error('the group fails');
  };
  await assert.rejects(world.worker.step(never), /the group fails/);
  world.before = async () => undefined;
  world.fill('a', 2);
  assert.equal((await world.worker.step(never)).total, 2);
});
