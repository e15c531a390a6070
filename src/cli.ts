import { readFileSync } from 'node:fs';
import { calls } from './commands/calls.ts';
import type { Command } from './commands/command.ts';
import { dev } from './commands/dev.ts';
import { dlq } from './commands/dlq.ts';
import { migrate } from './commands/migrate.ts';
import { reconcile } from './commands/reconcile.ts';
import { reset } from './commands/reset.ts';
import { serve } from './commands/serve.ts';
import { UsageError } from './commands/usage_error.ts';
import { webhooks } from './commands/webhooks.ts';
import { work } from './commands/work.ts';
import { StackError } from './stack/failure.ts';

const COMMANDS: Record<string, Command> = {
  dev,
  serve,
  work,
  dlq,
  webhooks,
  calls,
  reconcile,
  migrate,
  reset,
};

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

const overview = `sluice <command>

Commands:
${Object.entries(COMMANDS)
  .map(([name, { summary }]) => `  ${name.padEnd(9)} ${summary}`)
  .join('\n')}

  sluice <command> --help    how to use one
  sluice --version

Example:
  sluice dev
`;

async function main([name, ...args]: string[]): Promise<number> {
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    console.log(overview);
    return name === undefined ? EXIT_USAGE : 0;
  }
  if (name === '--version' || name === '-v') {
    console.log(JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version);
    return 0;
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) {
    console.error(`There is no command ${name}.\nhint: \`sluice --help\` lists them`);
    return EXIT_USAGE;
  }
  if (args.includes('--help') || args.includes('-h')) {
    console.log(command.usage);
    return 0;
  }
  try {
    return await command.run(args);
  } catch (error) {
    return report(name, error);
  }
}

/** What a person can mend is told in two lines; everything else is our mistake and shows where it happened. */
function report(name: string, error: unknown): number {
  if (error instanceof StackError) {
    console.error(`error: ${error.message}\nhint: ${error.hint}`);
    return EXIT_FAILED;
  }
  if (error instanceof UsageError) {
    console.error(`${error.message}\nhint: see \`sluice ${name} --help\``);
    return EXIT_USAGE;
  }
  if (error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS')) {
    console.error(`${error.message}\nhint: see \`sluice ${name} --help\``);
    return EXIT_USAGE;
  }
  console.error(error);
  return EXIT_FAILED;
}

process.exitCode = await main(process.argv.slice(2));
