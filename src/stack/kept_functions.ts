// The Edge Functions of a stack, each kept running behind DB1's gateway.

import { join } from 'node:path';
import {
  type EdgeFunction,
  FUNCTION_NAMES,
  type FunctionName,
  type FunctionOptions,
  findDeno,
  startFunction,
} from './functions.ts';
import { FUNCTIONS_PACKAGE, functionsRoot } from './functions_root.ts';
import type { Gateway } from './gateway.ts';
import { Keeper } from './keeper.ts';
import type { RunFiles } from './run_files.ts';

export type KeptFunctionsOptions = {
  /** The folder that holds db1/. */
  projectRoot: string;
  /** Where logs, the cache and a copy of the functions go. */
  runDir: string;
  gateway: Gateway;
  env: Record<string, string>;
  runFiles: RunFiles;
  /** Told each keeper before its first start. */
  onKeeper(keeper: Keeper<EdgeFunction>): void;
  say(line: string): void;
};

/** The functions are there or not: without Deno, and while one does not run, everything but its path works. */
export async function startFunctions(options: KeptFunctionsOptions): Promise<void> {
  const { gateway, runDir, say } = options;
  const binary = findDeno();
  if (binary === undefined) {
    say('Functions: no Deno for this platform, so /functions/v1 answers 503 (DENO_BIN names one)');
    return;
  }
  const projectRoot = functionsRoot(options.projectRoot, join(runDir, 'functions'));
  if (projectRoot === undefined) {
    say(
      `Functions: ${FUNCTIONS_PACKAGE} is not installed, so /functions/v1 answers 503 (npm brings it without --omit=optional)`,
    );
    return;
  }
  const ports = new Map<string, number | undefined>(FUNCTION_NAMES.map((name) => [name, undefined]));
  gateway.upstreams.functionPorts = ports;
  await Promise.all(
    FUNCTION_NAMES.map((name) =>
      keepFunction(name, { binary, projectRoot }, ports, options).then(
        () => say(`Functions: ${gateway.url}/functions/v1/${name}`),
        (error: Error) => say(`Functions: ${name} answers 503: ${error.message}`),
      ),
    ),
  );
}

function keepFunction(
  name: FunctionName,
  program: Pick<FunctionOptions, 'binary' | 'projectRoot'>,
  ports: Map<string, number | undefined>,
  { runDir, env, runFiles, onKeeper, say }: KeptFunctionsOptions,
): Promise<EdgeFunction> {
  const logFile = join(runDir, `${name}.log`);
  const keeper = new Keeper<EdgeFunction>({
    title: `Functions: ${name}`,
    logFile,
    say,
    async launch(signal) {
      const edgeFunction = await startFunction({
        ...program,
        name,
        env,
        cacheDir: join(runDir, 'deno'),
        logFile,
        signal,
        onSpawn: (pid) => runFiles.note(name, pid),
      });
      ports.set(name, edgeFunction.port);
      return edgeFunction;
    },
    onGone: () => ports.set(name, undefined),
  });
  onKeeper(keeper);
  return keeper.start();
}
