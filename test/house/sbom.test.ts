import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { NOTICES } from '../../tools/notices.ts';
import { runCommand } from '../run/command.ts';
import { PROJECT } from '../support/dev.ts';

interface Component {
  name: string;
  version: string;
}

describe('npm run sbom', () => {
  it('lists exactly the packages of THIRD_PARTY_NOTICES', async () => {
    const lines: string[] = [];
    const { code, output } = await runCommand('npm', ['run', '--silent', 'sbom'], {
      cwd: PROJECT,
      onLine: (line) => lines.push(line),
    });
    assert.equal(code, 0, output);
    const bom = JSON.parse(lines.join('\n'));
    assert.equal(bom.bomFormat, 'CycloneDX');
    assert.equal(bom.metadata.component.name, 'sluice');
    const listed = bom.components.map(({ name, version }: Component) => `${name} ${version}`);
    const entries = readFileSync(join(PROJECT, NOTICES), 'utf8').matchAll(
      /^(\S+) (\S+)\n {2}Licence: .*(?:\n {2}Builds: (.*))?/gm,
    );
    const noticed = [...entries].flatMap(([, name = '', version, builds]) =>
      builds === undefined
        ? [`${name} ${version}`]
        : builds.split(', ').map((build) => `${name.replace('*', build)} ${version}`),
    );
    assert.ok(
      noticed.some((entry) => entry.startsWith('pg ')),
      'pg is what npm leaves out',
    );
    assert.deepEqual([...new Set(listed)].sort(), noticed.sort());
  });
});
