import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { endedUs, loadShare, ownUs, spentOn } from '../../bench/cpu.ts';
import { cpuRatio, takeTurns } from '../../bench/turns.ts';

/** A world in which time is CPU: each turn costs a player so much for each operation, and being idle costs it `idle`. */
function playersOf(costs: Record<string, (round: number) => number>, idle = 0) {
  const spent: Record<string, number> = {};
  const order: string[] = [];
  const players = Object.entries(costs).map(([name, cost]) => {
    spent[name] = 0;
    let round = 0;
    return {
      name,
      cpuUs: () => ({ server: (spent[name] ?? 0) / 4, db1: ((spent[name] ?? 0) * 3) / 4 }),
      async play() {
        order.push(name);
        for (const other of Object.keys(costs)) if (other !== name) spent[other] = (spent[other] ?? 0) + idle;
        spent[name] = (spent[name] ?? 0) + cost(round++) * 10;
        return 10;
      },
    };
  });
  return { players, order };
}

test('players take turns, and each turn has its own operations and CPU by part', async () => {
  const { players, order } = playersOf({ ours: () => 4, theirs: () => 8 });
  const turns = await takeTurns(players, 2);
  assert.deepEqual(order, ['ours', 'theirs', 'ours', 'theirs']);
  assert.deepEqual(turns.get('ours'), Array(2).fill({ ops: 10, partsUs: { server: 10, db1: 30 } }));
  assert.deepEqual(turns.get('theirs'), Array(2).fill({ ops: 10, partsUs: { server: 20, db1: 60 } }));
});

test('what a player does between its turns is its own', async () => {
  const { players } = playersOf({ ours: () => 4, theirs: () => 8 }, 40);
  const [first] = (await takeTurns(players, 2)).get('ours') ?? [];
  assert.deepEqual(first?.partsUs, { server: 20, db1: 60 }, '40 of the turn, 40 while the other played');
});

test('the ratio is the median of the rounds: a slow minute that hits both changes nothing, one bad round neither', async () => {
  const slow = [1, 5, 1];
  const ratioOf = async (theirs: (round: number) => number) => {
    const { players } = playersOf({ ours: (round) => 4 * (slow[round] ?? 1), theirs });
    const turns = await takeTurns(players, 3);
    return cpuRatio(turns.get('theirs') ?? [], turns.get('ours') ?? []);
  };
  assert.equal(await ratioOf((round) => 8 * (slow[round] ?? 1)), 2);
  assert.equal(await ratioOf((round) => (round === 0 ? 800 : 8 * (slow[round] ?? 1))), 2);
  assert.equal(await ratioOf((round) => 2 * (slow[round] ?? 1)), 0.5, 'the other way round it is missed');
});

test('turns that do not pair are refused', () => {
  const turn = { ops: 1, partsUs: { server: 1 } };
  assert.throws(() => cpuRatio([turn], [turn, turn]), /1 turns against 2/);
  assert.throws(() => cpuRatio([], []), /0 turns/);
});

test('a core’s rate leaves the load generator out, and its share is of all', () => {
  const spent = spentOn(100, 20_000, 5_000);
  assert.deepEqual(spent, { cpu_us: 200, load_cpu_us: 50, per_core: 5_000 });
  assert.equal(loadShare(spent), 0.2);
  assert.equal(loadShare({ cpu_us: 0, load_cpu_us: 0 }), 0);
  assert.equal(spentOn(100, 0, 0).per_core, 0);
});

test('a program that has ended is counted with its parent, once', () => {
  const burnedUs = 500_000;
  const [ownBefore, endedBefore] = [ownUs(), endedUs()];
  const burn = `while (process.cpuUsage().user + process.cpuUsage().system < ${burnedUs});`;
  assert.equal(spawnSync(process.execPath, ['-e', burn]).status, 0);
  const ended = endedUs() - endedBefore;
  // It starts and ends beside that; and /proc counts in hundredths of a second.
  assert.ok(ended > 0.9 * burnedUs && ended < 1.9 * burnedUs, `${ended} µs`);
  assert.ok(ownUs() - ownBefore < burnedUs / 2, 'and is not this process’s own');
});
