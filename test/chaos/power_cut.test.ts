// Power cuts need root on Debian: each disk is a mounted image (chaos/disk.ts).

import assert from 'node:assert/strict';
import { closeSync, existsSync, fsyncSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { CONTROLS } from '../../chaos/controls/controls.ts';
import { type Control, runControl } from '../../chaos/controls/run_control.ts';
import { Disks, whyNoDisks } from '../../chaos/disk.ts';
import { judge } from '../../chaos/judge.ts';
import { POWER_CUT } from '../../chaos/options.ts';
import { runHistory } from '../../chaos/world_run.ts';

const SEED = Number(process.env.SLUICE_CHAOS_SEED ?? Date.now() % 1_000_000);
const MINUTES = 0.3;

describe('a power cut', { skip: await whyNoDisks() }, () => {
  it('leaves what was synced, and takes what was only written', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'sluice-disk-'));
    const disks = await Disks.open(dir);
    try {
      const disk = disks.add('one');
      writeSynced(join(disk.dir, 'synced'));
      writeSynced(disk.dir);
      writeFileSync(join(disk.dir, 'written'), 'x');
      disk.losePower();
      writeSynced(join(disk.dir, 'afterwards'));
      await disk.comeBack();
      const left = ['synced', 'written', 'afterwards'].filter((name) => existsSync(join(disk.dir, name)));
      assert.deepEqual(left, ['synced']);
    } finally {
      await disks.close();
      rmSync(dir, { recursive: true });
    }
  });

  it(`of DB1, DB2 and everything breaks no promise (seed ${SEED})`, async (t) => {
    t.diagnostic(`SLUICE_CHAOS_SEED=${SEED}`);
    const options = { seed: SEED, minutes: MINUTES, faults: [POWER_CUT], scale: 'small' } as const;
    const history = await runHistory(options);
    const { violations, counts } = judge(history);
    t.diagnostic(`${history.faults.length} power cuts, ${JSON.stringify(counts)}`);
    assert.deepEqual(violations, []);
    assert.deepEqual(history.surprises, []);
    assert.ok(history.faults.length > 0, 'no power cut happened');
    assert.ok(counts.claims.acknowledged > 0, 'no claims were acknowledged');
  });

  it('of a database with fsync off loses claims, and the judge notices', async (t) => {
    const result = await runControl(CONTROLS.find(({ name }) => name === 'fsync-off') as Control, runHistory);
    t.diagnostic(JSON.stringify(result));
    assert.notEqual(result.seed, null);
  });
});

/** A folder holds the names of its files: it is synced by itself. */
function writeSynced(path: string): void {
  const file = existsSync(path) ? openSync(path, 'r') : openSync(path, 'w');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
