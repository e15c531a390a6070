import { join } from 'node:path';
import { checkTidy, formatFinding } from '../tidy/tidy.ts';
import { runCommand } from './command.ts';
import { failedOne, PASSED_ONE } from './outcome.ts';
import type { Stage } from './stage.ts';

/** A tool of the house that passes or fails as a whole counts as one test. */
function toolStage(name: string, tool: string, args: readonly string[]): Stage {
  return {
    name,
    run: async ({ root }) => {
      const { code, output } = await runCommand(join(root, 'node_modules', '.bin', tool), args, {
        cwd: root,
      });
      return code === 0 ? PASSED_ONE : failedOne(`${tool} ${args.join(' ')}`, output);
    },
  };
}

export const lint = toolStage('lint', 'biome', ['check', '--error-on-warnings', '.']);
export const types = toolStage('types', 'tsc', ['--noEmit']);

export const tidy: Stage = {
  name: 'tidy',
  run: async ({ root }) => {
    const findings = checkTidy(root);
    if (findings.length === 0) return PASSED_ONE;
    return failedOne(`tidy: ${findings.length} found`, findings.map(formatFinding).join('\n'));
  },
};
