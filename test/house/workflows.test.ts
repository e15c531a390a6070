import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { PROJECT } from '../support/dev.ts';

const DIR = join(PROJECT, '.github', 'workflows');
/** Filled in on the host, with its folders; steps of a container see the same ones elsewhere, and only $GITHUB_… says where. */
const HOST_FOLDER = /\$\{\{\s*(?:github\.workspace|runner\.temp)\b/;

describe('workflows', () => {
  for (const file of readdirSync(DIR))
    it(`${file} names no folder of the host to a job in a container`, () => {
      const text = readFileSync(join(DIR, file), 'utf8');
      const jobs = text.split(/^ {2}(?=[\w-]+:\n {4})/m);
      for (const job of jobs.filter((part) => /^ {4}container:/m.test(part)))
        assert.doesNotMatch(job, HOST_FOLDER);
    });
});
