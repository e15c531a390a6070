import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { UsageError } from '../../bench/command.ts';
import { FAULT_KINDS } from '../../chaos/faults/kinds.ts';
import {
  commandLine,
  FAULTS,
  isNeighbour,
  NEIGHBOURS,
  POWER_CUT,
  PROCESS_FAULTS,
  readCommand,
} from '../../chaos/options.ts';
import { LINKS, planFaults, SERVERS, TARGET_MOODS, WORKERS } from '../../chaos/schedule.ts';

const MINUTES = 10;
const OTHERS = FAULTS.filter((fault) => !isNeighbour(fault));

describe('the schedule of faults', () => {
  it('is the same for the same seed, and another for another', () => {
    const plan = planFaults(7, MINUTES, FAULTS);
    assert.deepEqual(planFaults(7, MINUTES, FAULTS), plan);
    assert.notDeepEqual(planFaults(8, MINUTES, FAULTS), plan);
  });

  it('has every kind once before any comes twice', () => {
    const plan = planFaults(1, MINUTES, FAULTS).map(({ fault }) => fault);
    for (const [group, rounds] of [
      [OTHERS, 3],
      [NEIGHBOURS, 2],
    ] as const) {
      const kinds = plan.filter((fault) => (group as readonly string[]).includes(fault));
      assert.ok(kinds.length >= rounds * group.length, `only ${kinds.length} of ${group}`);
      for (let round = 0; round + group.length <= kinds.length; round += group.length)
        assert.deepEqual([...kinds.slice(round, round + group.length)].sort(), [...group].sort());
    }
  });

  it('gives neighbours windows of their own, one at a time, long after other faults were healed', () => {
    for (const seed of [1, 2, 3]) {
      const plan = planFaults(seed, MINUTES, FAULTS);
      const endOf = ({ atMs, forMs }: (typeof plan)[number]) => atMs + forMs;
      const neighbours = plan.filter(({ fault }) => isNeighbour(fault));
      for (const one of neighbours)
        for (const other of plan) {
          if (other === one) continue;
          const restMs = isNeighbour(other.fault) ? 2_000 : 8_000;
          assert.ok(endOf(other) + restMs <= one.atMs || other.atMs >= endOf(one), `${seed} ${one.atMs}`);
        }
    }
  });

  it('has no window for neighbours in a run that is too short for both, and nothing else where they are alone', () => {
    const kinds = (minutes: number, faults = FAULTS as readonly (typeof FAULTS)[number][]) =>
      planFaults(1, minutes, faults).map(({ fault }) => isNeighbour(fault));
    assert.ok(!kinds(0.35).includes(true));
    assert.ok(kinds(1).includes(true) && kinds(1).includes(false));
    assert.ok(kinds(2, NEIGHBOURS).length > NEIGHBOURS.length && !kinds(2, NEIGHBOURS).includes(false));
  });

  it('begins with those that are to come first, and still has every kind once before any comes twice', () => {
    for (const seed of [1, 2, 3]) {
      const kinds = planFaults(seed, MINUTES, FAULTS, ['cut', 'kill-worker']).map(({ fault }) => fault);
      assert.deepEqual(kinds.slice(0, 2), ['cut', 'kill-worker']);
      const others = kinds.filter((fault) => !isNeighbour(fault));
      assert.deepEqual(others.slice(0, OTHERS.length).sort(), [...OTHERS].sort());
    }
    assert.deepEqual(
      planFaults(1, MINUTES, ['delay'], ['cut']).filter(({ fault }) => fault !== 'delay'),
      [],
    );
  });

  it('keeps to its minutes and to the faults it was given, in the order of time', () => {
    const plan = planFaults(3, 2, ['cut', 'kill-worker']);
    assert.ok(plan.length > 0);
    assert.deepEqual(
      plan.map(({ atMs }) => atMs),
      plan.map(({ atMs }) => atMs).sort((one, other) => one - other),
    );
    for (const { atMs, fault } of plan) assert.ok(atMs < 120_000 && ['cut', 'kill-worker'].includes(fault));
    assert.deepEqual(planFaults(3, 2, []), []);
  });

  it('aims only at what there is, and in the long run at all of it', () => {
    const targets = new Map<string, Set<string>>();
    for (const { fault, target } of planFaults(5, 120, [...FAULTS, ...PROCESS_FAULTS, POWER_CUT]))
      targets.set(fault, (targets.get(fault) ?? new Set()).add(target));
    assert.deepEqual([...(targets.get('cut') ?? [])].sort(), [...LINKS].sort());
    assert.deepEqual([...(targets.get('kill-worker') ?? [])].sort(), [...WORKERS]);
    assert.deepEqual([...(targets.get('kill-server') ?? [])].sort(), [...SERVERS]);
    for (const fault of PROCESS_FAULTS)
      assert.deepEqual([...(targets.get(fault) ?? [])].sort(), [...SERVERS, ...WORKERS]);
    assert.deepEqual([...(targets.get('target-errors') ?? [])].sort(), [...TARGET_MOODS].sort());
    assert.deepEqual([...targets.keys()].sort(), Object.keys(FAULT_KINDS).sort());
  });
});

describe('the options of npm run chaos', () => {
  const read = (...args: string[]) => readCommand(args, () => 42);

  it('choose a seed where none is given, and all faults', () => {
    assert.deepEqual(read(), {
      seed: 42,
      minutes: 1,
      faults: FAULTS,
      scale: 'full',
      processes: 1,
      keep: false,
      controls: true,
      journals: false,
    });
    assert.deepEqual(read('--faults', 'cut,delay', '--seed', '7')?.faults, ['cut', 'delay']);
    assert.deepEqual(read('--faults', 'power-cut')?.faults, [POWER_CUT]);
    assert.deepEqual(read('--faults', 'none')?.faults, []);
    assert.deepEqual(read('--faults', 'neighbours')?.faults, NEIGHBOURS);
    assert.deepEqual(read('--faults', 'cut,neighbours')?.faults, ['cut', ...NEIGHBOURS]);
    assert.deepEqual(read('--processes', '2')?.faults, [...FAULTS, ...PROCESS_FAULTS]);
    assert.equal(read('--help'), undefined);
  });

  it('are all in the line that repeats a run', () => {
    for (const given of [
      ['--seed', '7'],
      ['--faults', 'stripe', '--minutes', '20'],
      ['--faults', 'none', '--scale', 'small', '--keep'],
      ['--keep', '--skip-controls'],
      ['--processes', '2'],
      ['--processes', '2', '--faults', 'kill-process,cut'],
    ]) {
      const command = read(...given);
      assert.ok(command !== undefined);
      const [, again = ''] = commandLine(command).split(' -- ');
      assert.deepEqual(read(...again.split(' ')), command, given.join(' '));
    }
  });

  it('are refused with the reason where they make no sense', () => {
    for (const [args, reason] of [
      [['--seed', 'x'], /--seed is "x"/],
      [['--seed', '-1'], /seed/],
      [['--minutes', '0'], /--minutes is "0"/],
      [['--minutes', 'NaN'], /--minutes is "NaN"/],
      [['--faults', 'cut,earthquake'], /unknown fault "earthquake"; known are kill-db1-postmaster/],
      [['--scale', 'huge'], /--scale is "huge"/],
      [['--processes', '0'], /--processes is "0"/],
      [['--processes', '65'], /--processes is "65"/],
      [['--processes', 'x'], /--processes is "x"/],
      [['--faults', 'reload'], /reload needs --processes 2/],
      [['--nonsense'], /--nonsense/],
    ] as const)
      assert.throws(
        () => read(...args),
        (error: Error & { code?: string }) =>
          (error instanceof UsageError || error.code?.startsWith('ERR_PARSE_ARGS') === true) &&
          reason.test(error.message),
      );
  });
});
