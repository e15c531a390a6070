import { join } from 'node:path';
import { checkTidy, formatFinding } from '../tidy/tidy.ts';
import { runCommand } from './command.ts';
import { failedOne, PASSED_ONE, sum } from './outcome.ts';
import type { Stage } from './stage.ts';

/** A run of a tool of the house passes or fails as a whole and counts as one test. */
function toolStage(name: string, tool: string, ...runs: readonly (readonly string[])[]): Stage {
  return {
    name,
    run: async ({ root }) => {
      const program = join(root, 'node_modules', '.bin', tool);
      const outcomes = runs.map(async (args) => {
        const { code, output } = await runCommand(program, args, { cwd: root });
        return code === 0 ? PASSED_ONE : failedOne(`${tool} ${args.join(' ')}`, output);
      });
      return sum(await Promise.all(outcomes));
    },
  };
}

export const lint = toolStage('lint', 'biome', ['check', '--error-on-warnings', '.']);
/** The pages know the browser's globals and the rest knows Node's, so they are two projects. */
export const types = toolStage('types', 'tsc', ['--noEmit'], ['--noEmit', '-p', 'console']);

export const tidy: Stage = {
  name: 'tidy',
  run: async ({ root }) => {
    const findings = checkTidy(root);
    if (findings.length === 0) return PASSED_ONE;
    return failedOne(`tidy: ${findings.length} found`, findings.map(formatFinding).join('\n'));
  },
};
