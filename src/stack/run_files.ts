import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StackError } from '../failure.ts';
import { identify, isSameProcess, type ProcessId, stopProcess } from './processes.ts';

const OWN_NAME = 'sluice';
const LEFTOVER_PATIENCE_MS = 10_000;

/** The processes of one stack, by name, as files in a folder: what a later start or a reset goes by. */
export type RunFiles = {
  /** Notes a child; the note is taken away when it has ended as it should. */
  note(name: string, pid: number): void;
  forget(name: string): void;
  /** Ends what a run that was killed left behind. Returns the names of what was still there. */
  stopLeftovers(): Promise<string[]>;
  /** This run is over. */
  release(): void;
};

/** The process that has the folder; undefined where none has. */
export function runningPid(runDir: string): number | undefined {
  const own = read(join(runDir, `${OWN_NAME}.json`));
  return own && isSameProcess(own) ? own.pid : undefined;
}

export function refuseIfRunning(runDir: string): void {
  const pid = runningPid(runDir);
  if (pid === undefined) return;
  throw new StackError(
    `already running (pid ${pid})`,
    'stop it with Ctrl-C where it runs, or choose another folder with SLUICE_DIR',
  );
}

/** Claims the folder for this process, or says who has it. */
export function claimRunDir(runDir: string): RunFiles {
  mkdirSync(runDir, { recursive: true });
  refuseIfRunning(runDir);
  const fileOf = (name: string) => join(runDir, `${name}.json`);
  const note = (name: string, child: number) => writeFileSync(fileOf(name), JSON.stringify(identify(child)));
  const forget = (name: string) => rmSync(fileOf(name), { force: true });
  note(OWN_NAME, process.pid);
  return {
    note,
    forget,
    release: () => forget(OWN_NAME),
    async stopLeftovers() {
      const names = readdirSync(runDir)
        .filter((file) => file.endsWith('.json'))
        .map((file) => file.slice(0, -'.json'.length))
        .filter((name) => name !== OWN_NAME);
      const stopped: string[] = [];
      for (const name of names) {
        const process = read(fileOf(name));
        if (process && isSameProcess(process)) {
          // SIGINT is Postgres's fast shutdown, SIGQUIT its immediate one; PostgREST ends on the first.
          await stopProcess(process.pid, ['SIGINT', 'SIGQUIT', 'SIGKILL'], LEFTOVER_PATIENCE_MS);
          stopped.push(name);
        }
        forget(name);
      }
      return stopped;
    },
  };
}

function read(file: string): ProcessId | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    // Missing: nothing noted. Cut short by a kill while being written: nothing that can be trusted.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' || error instanceof SyntaxError) return undefined;
    throw error;
  }
}
