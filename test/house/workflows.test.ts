import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { PROJECT } from '../support/dev.ts';
import {
  jobsNamingHostFolders,
  jobsWithoutLimit,
  permissionFaults,
  testMatrixFaults,
  unpinnedActions,
} from './workflow_rules.ts';

const DIR = join(PROJECT, '.github', 'workflows');
const read = (file: string) => readFileSync(join(DIR, file), 'utf8');

const HASH = '0123456789abcdef0123456789abcdef01234567';

/** A workflow in which there is nothing to find; each test plants one defect in it. */
const GOOD = `name: ci
on:
  push:

permissions:
  contents: read

jobs:
  test:
    runs-on: ubuntu-latest
    timeout-minutes: 60
    strategy:
      matrix:
        node: [20, 22, 24]
    container: node:\${{ matrix.node }}-bookworm
    steps:
      - uses: actions/checkout@${HASH} # v7.0.1
      - run: .ci/run
`;

describe('workflows', () => {
  for (const file of readdirSync(DIR)) {
    it(`${file} pins every action by its commit and names the version`, () => {
      assert.deepEqual(unpinnedActions(read(file)), []);
    });

    it(`${file} has a permissions block that writes nothing`, () => {
      assert.deepEqual(permissionFaults(read(file)), []);
    });

    it(`${file} limits the time of each job`, () => {
      assert.deepEqual(jobsWithoutLimit(read(file)), []);
    });

    it(`${file} names no folder of the host to a job in a container`, () => {
      assert.deepEqual(jobsNamingHostFolders(read(file)), []);
    });
  }

  it('ci.yml runs the whole check on each supported Node within an hour', () => {
    assert.deepEqual(testMatrixFaults(read('ci.yml')), []);
  });
});

describe('the rules of workflows', () => {
  it('find nothing in a good workflow', () => {
    for (const rule of [unpinnedActions, permissionFaults, jobsWithoutLimit, jobsNamingHostFolders])
      assert.deepEqual(rule(GOOD), []);
    assert.deepEqual(testMatrixFaults(GOOD), []);
  });

  for (const action of [
    'actions/checkout@v7',
    'actions/checkout@v7.0.1 # v7.0.1',
    `actions/checkout@${HASH}`,
    `actions/checkout@${HASH.slice(1)} # v7.0.1`,
    'docker://node:22',
  ])
    it(`refuse ${action}`, () => {
      const planted = GOOD.replace(/actions\/checkout.*/, action);
      assert.deepEqual(unpinnedActions(planted), [action]);
    });

  it('miss no permissions block, wherever else the word stands', () => {
    const planted = GOOD.replace('permissions:\n  contents: read\n', '').replace(
      '    runs-on',
      '    permissions:\n      contents: read\n    runs-on',
    );
    assert.equal(permissionFaults(planted).length, 1);
  });

  it('refuse a right to write that all jobs have', () => {
    assert.equal(permissionFaults(GOOD.replace('contents: read', 'contents: write')).length, 1);
    assert.equal(
      permissionFaults(GOOD.replace('permissions:\n  contents: read', 'permissions: write-all')).length,
      1,
    );
  });

  it('name the Node that is missing, and a limit that is not the agreed one', () => {
    assert.deepEqual(testMatrixFaults(GOOD.replace('[20, 22, 24]', '[20, 24]')), [
      'Node 22 is not in the matrix',
    ]);
    assert.deepEqual(testMatrixFaults(GOOD.replace('minutes: 60', 'minutes: 20')), [
      'the limit is not 60 minutes',
    ]);
  });

  it('name a job without a limit, and one in a container that is told a folder of the host', () => {
    assert.deepEqual(jobsWithoutLimit(GOOD.replace(/ {4}timeout.*\n/, '')), ['test']);
    const planted = GOOD.replace('.ci/run', `ls \${{ github.workspace }}`);
    assert.deepEqual(jobsNamingHostFolders(planted), ['test']);
  });
});
