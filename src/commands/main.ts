import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { toHttpError } from '#core/failure.ts';
import { ApiError } from '../admin/client.ts';
import { StackError } from '../failure.ts';
import { PROJECT_ROOT } from '../project_root.ts';
import { admit } from './admission.ts';
import { COMMANDS } from './all.ts';
import { ANY_DATABASE, explained } from './db2.ts';
import { find, nearest, runCommand, UsageError } from './grammar.ts';
import { listOf, pageOf } from './help.ts';

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
const DATABASE_HINT =
  'are both databases running, and are DB1_URL and DB2_URL theirs? `sluice doctor` tells which is not';

function overview(): string {
  return `sluice <command>

Commands:
${listOf(Object.entries(COMMANDS).map(([name, [summary]]) => [name, summary]))}

  sluice <command> --help    how to use one
  sluice --version

Exit codes: 0 done, 1 not done, 2 not understood.

Examples:
  sluice dev
  sluice doctor
  sluice pools create opening_night --slots 500
`;
}

/** `sluice` with these words; returns the exit code. */
export async function main(words: string[]): Promise<number> {
  // `sluice help dlq` is `sluice dlq --help`.
  const [name, ...args] = words[0] === 'help' && words.length > 1 ? [...words.slice(1), '--help'] : words;
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    console.log(overview());
    return name === undefined ? EXIT_USAGE : 0;
  }
  if (name === '--version' || name === '-v') {
    console.log(JSON.parse(readFileSync(join(PROJECT_ROOT, 'package.json'), 'utf8')).version);
    return 0;
  }
  const listed = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (listed === undefined) {
    const meant = nearest(name, Object.keys(COMMANDS));
    const hint = meant === undefined ? '`sluice --help` lists them' : `did you mean \`sluice ${meant}\`?`;
    console.error(`Unknown command ${name}.\nhint: ${hint}`);
    return EXIT_USAGE;
  }
  const [, load] = listed;
  const { command } = await load();
  if (args.includes('--help') || args.includes('-h')) {
    console.log(pageOf(find(name, command, args).place));
    return 0;
  }
  try {
    return await runCommand(name, command, args, admit);
  } catch (error) {
    return report(error);
  }
}

/** What a person can mend is told in two lines; everything else is our mistake and shows where it happened. */
function report(error: unknown): number {
  if (error instanceof UsageError) {
    console.error(`${error.message}\nhint: ${error.hint}`);
    return EXIT_USAGE;
  }
  if (error instanceof StackError || error instanceof ApiError) {
    console.error(`error: ${error.message}\nhint: ${error.hint}`);
    return isWrongUse(error) ? EXIT_USAGE : EXIT_FAILED;
  }
  if (toHttpError(error).kind.code === 'database_unavailable') {
    console.error(`error: ${messageOf(error)}\nhint: ${DATABASE_HINT}`);
    return EXIT_FAILED;
  }
  const told = explained(error, ...ANY_DATABASE);
  if (told !== error) return report(told);
  console.error(error);
  return EXIT_FAILED;
}

/** The server judges values that only it knows the rules of; a value that it does not understand was wrong use too. */
function isWrongUse(error: StackError | ApiError): boolean {
  return error instanceof ApiError && error.code === 'invalid_input';
}

/** A refused connection to a name with several addresses has its reasons inside. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return messageOf(error.errors[0]);
  return error instanceof Error ? error.message : String(error);
}
