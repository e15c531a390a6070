import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { planProcesses } from '../../src/commands/dev_processes.ts';
import { createMetrics } from '../../src/metrics.ts';
import type { ToMember } from '../../src/processes/messages.ts';
import { MAX_PROCESSES, readPart, restOf, shareOf, textOfPart, WHOLE } from '../../src/processes/part.ts';
import { type Peer, Switchboard } from '../../src/processes/switchboard.ts';

describe('the share of a process', () => {
  const sharesOf = (limit: number, of: number): number[] =>
    Array.from({ length: of }, (_, index) => shareOf(limit, { index, of }));

  it('is the whole limit where there is one process', () => {
    for (const limit of [1, 4, 20_000]) assert.equal(shareOf(limit, WHOLE), limit);
  });

  it('adds up to the limit, however it divides', () => {
    for (let of = 1; of <= MAX_PROCESSES; of++)
      for (const limit of [64, 100, 101, 20_000])
        assert.equal(
          sharesOf(limit, of).reduce((sum, share) => sum + share, 0),
          limit,
          `${limit} of ${of}`,
        );
  });

  it('is at least one: with more processes than the limit, the limit is their number', () => {
    assert.deepEqual(sharesOf(2, 4), [1, 1, 1, 1]);
    assert.deepEqual(sharesOf(0, 2), [1, 1]);
  });

  it('is told as text, and text that is none of it is not a part', () => {
    for (const part of [WHOLE, { index: 63, of: 64 }]) assert.deepEqual(readPart(textOfPart(part)), part);
    for (const text of [undefined, '', '1', '1/', '/2', 'one/two', '1/2/3', '100/200'])
      assert.equal(readPart(text), undefined);
  });
});

describe('idle workers', () => {
  it('rest for two seconds, except the first of the first process', () => {
    const first = { index: 0, of: 2 };
    const second = { index: 1, of: 2 };
    assert.deepEqual([restOf(WHOLE), restOf(WHOLE, 0), restOf(first, 0)], [{}, {}, {}]);
    for (const rest of [restOf(WHOLE, 1), restOf(first, 1), restOf(second), restOf(second, 1)])
      assert.deepEqual(rest, { idleMs: 2_000 });
  });
});

describe('the processes of npm start', () => {
  it('are one on two cores, and more where there are more', () => {
    const planned = (cores: number) => {
      const { servers, workers } = planProcesses(undefined, false, cores);
      return [servers, workers];
    };
    assert.deepEqual([1, 2].map(planned), [
      [0, 0],
      [0, 0],
    ]);
    assert.deepEqual([3, 4, 7].map(planned), Array(3).fill([1, 1]));
    assert.deepEqual([8, 16, 64].map(planned), [
      [2, 1],
      [4, 1],
      [4, 1],
    ]);
  });

  it('are as many as were asked for, and said', () => {
    assert.deepEqual(planProcesses(1, false, 8), {
      ...{ servers: 0, workers: 0, text: 'one on 8 cores: workers and server' },
    });
    assert.deepEqual(planProcesses(3, false, 2), {
      ...{ servers: 2, workers: 1, text: '3 on 2 cores: 2 servers, 1 worker' },
    });
    assert.deepEqual(planProcesses(2, true, 1), {
      ...{ servers: 2, workers: 0, text: '2 on 1 core: 2 servers' },
    });
  });
});

describe('the switchboard', () => {
  /** A member that counts, and answers for its numbers while it lives. */
  const member = (board: Switchboard) => {
    const metrics = createMetrics();
    const answers = new Map<number, unknown>();
    let nextId = 0;
    let isSilent = false;
    const peer: Peer = {
      send(message: ToMember) {
        if (message.kind === 'answer') answers.set(message.id, message.answer);
        if (message.kind !== 'count' || isSilent) return;
        void metrics.snapshot().then((own) => board.hear(peer, { kind: 'snapshot', id: message.id, own }));
      },
    };
    board.add(peer);
    const collect = async () => {
      const id = nextId++;
      board.hear(peer, { kind: 'ask', id, question: { collect: await metrics.snapshot() } });
      while (!answers.has(id)) await new Promise((resolve) => setImmediate(resolve));
      return [
        await metrics.snapshot(),
        ...(answers.get(id) as Awaited<ReturnType<typeof metrics.snapshot>>[]),
      ];
    };
    const total = async (name: string): Promise<number> =>
      (await collect())
        .flat()
        .filter((metric) => metric.name === name)
        .flatMap(({ values }) => values)
        .reduce((sum, { value }) => sum + value, 0);
    return {
      metrics,
      total,
      die: () => board.remove(peer),
      fallSilent() {
        isSilent = true;
      },
    };
  };
  const CLAIMS = 'sluice_claims_total';

  it('keeps what a dead member had counted, and forgets what it was', async () => {
    const board = new Switchboard({});
    const [one, other] = [member(board), member(board)];
    one.metrics.count(CLAIMS, { outcome: 'claimed' }, 2);
    other.metrics.count(CLAIMS, { outcome: 'claimed' }, 3);
    other.metrics.count('sluice_bridge_breaker_open', { target: 'ledger' }, 1);
    assert.deepEqual([await one.total(CLAIMS), await other.total(CLAIMS)], [5, 5]);
    assert.equal(await one.total('sluice_bridge_breaker_open'), 1);
    other.die();
    assert.equal(await one.total(CLAIMS), 5);
    assert.equal(await one.total('sluice_bridge_breaker_open'), 0);
    assert.equal(await one.total('sluice_processes'), 1);
    const third = member(board);
    third.metrics.count(CLAIMS, { outcome: 'claimed' }, 1);
    assert.equal(await one.total(CLAIMS), 6);
    third.die();
    assert.equal(await one.total(CLAIMS), 6);
  });

  it('counts a member that dies while it is asked once', async () => {
    const board = new Switchboard({});
    const [one, other] = [member(board), member(board)];
    other.metrics.count(CLAIMS, { outcome: 'claimed' }, 3);
    assert.equal(await one.total(CLAIMS), 3);
    other.fallSilent();
    const asked = one.total(CLAIMS);
    await new Promise((resolve) => setImmediate(resolve));
    other.die();
    assert.equal(await asked, 3);
    assert.equal(await one.total(CLAIMS), 3);
  });

  it('shows a member that is silent with what it said last', async () => {
    const board = new Switchboard({});
    const [one, other] = [member(board), member(board)];
    other.metrics.count(CLAIMS, { outcome: 'claimed' }, 3);
    assert.equal(await one.total(CLAIMS), 3);
    other.fallSilent();
    assert.equal(await one.total(CLAIMS), 3);
  });
});
