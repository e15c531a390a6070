// Rooms: how many items a target may have under way, and how many calls go at a time.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Limiter } from '#core/limiter.ts';
import { Targets } from '#core/target.ts';
import { gate, turns } from './lease_world.ts';

describe('a target', () => {
  test('has room for what its limit leaves, none while it is left alone, and as few as probe it afterwards', () => {
    let nowMs = 0;
    for (const [probes, expected] of [
      [undefined, 5],
      [2, 2],
      [9, 5],
    ] as const) {
      const targets = new Targets({
        now: () => nowMs,
        limitOf: () => 5,
        ...(probes && { probesOf: () => probes }),
      });
      const target = targets.of('t');
      assert.equal(target.room, 5);
      target.enter(2);
      assert.equal(target.room, 3);
      target.enter(4);
      assert.equal(target.room, 0, 'never less than none');
      target.leave(6);
      target.breaker.outage();
      assert.equal(target.room, 0);
      nowMs += 500;
      assert.equal(target.room, expected);
      target.enter(1);
      assert.equal(target.room, expected - 1);
      target.breaker.succeeded();
      assert.equal(target.room, 4);
    }
  });
});

describe('a target that is down', () => {
  test('says why at each try that finds it so, and nothing where the caller does not know', () => {
    let nowMs = 0;
    const heard: (readonly [string, boolean | string])[] = [];
    const targets = new Targets({
      now: () => nowMs,
      limitOf: () => 1,
      onChange: (name, isDown) => heard.push([name, isDown]),
      onOutage: (name, why) => heard.push([name, why]),
    });
    const { breaker } = targets.of('hook');
    breaker.outage('connect ECONNREFUSED');
    breaker.outage('not asked while it is left alone');
    nowMs += 500;
    breaker.outage('certificate has expired');
    nowMs += 1_000;
    breaker.outage();
    assert.deepEqual(heard, [
      ['hook', true],
      ['hook', 'connect ECONNREFUSED'],
      ['hook', 'certificate has expired'],
    ]);
    breaker.succeeded();
    for (const item of [1, 2, 3]) breaker.failed(item, 'status 500');
    assert.deepEqual(heard.slice(3), [
      ['hook', false],
      ['hook', true],
      ['hook', 'status 500'],
    ]);
  });
});

describe('a limiter', () => {
  test('runs so many at a time, the others in the order in which they came', async () => {
    const limiter = new Limiter(2);
    const begun: number[] = [];
    const start = (at: number) => {
      const { open, passed } = gate();
      const ended = limiter.run(async () => {
        begun.push(at);
        await passed;
        return at;
      });
      return { open, ended };
    };
    const round = [0, 1, 2, 3].map(start);
    await turns();
    assert.deepEqual(begun, [0, 1]);
    round[1]?.open();
    await turns();
    assert.deepEqual(begun, [0, 1, 2]);
    for (const { open } of round) open();
    assert.deepEqual(await Promise.all(round.map(({ ended }) => ended)), [0, 1, 2, 3]);
    const next = [4, 5, 6].map(start);
    await turns();
    assert.deepEqual(begun.slice(4), [4, 5], 'its room is as large as before');
    for (const { open } of next) open();
    await Promise.all(next.map(({ ended }) => ended));
  });

  test('goes on after one that fails', async () => {
    const limiter = new Limiter(1);
    await assert.rejects(limiter.run(async () => Promise.reject(new Error('as told'))));
    assert.equal(await limiter.run(async () => 'next'), 'next');
  });
});
