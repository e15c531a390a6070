import { spawn } from 'node:child_process';
import { endGroup, signal } from './leftovers.ts';

export type CommandResult = {
  code: number | null;
  output: string;
  /** What the command had started and left running, in words. It is ended. */
  leftovers: string[];
};

export type CommandOptions = {
  cwd: string;
  /** Called for each line of stdout as it arrives; such lines are not part of `output`. */
  onLine?: (line: string) => void;
};

const KILL_AFTER_MS = 10_000;

/** What runs now, by process group, and when it will have ended. */
const running = new Map<number, Promise<unknown>>();

/** Runs a command in a process group of its own: stopping the run reaches its grandchildren, and none of them outlives it. */
export function runCommand(
  command: string,
  args: readonly string[],
  options: CommandOptions,
): Promise<CommandResult> {
  const child = spawn(command, args, { cwd: options.cwd, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const { pid } = child;
  const result = new Promise<CommandResult>((resolve, reject) => {
    let output = '';
    let partial = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      if (options.onLine === undefined) {
        output += chunk;
        return;
      }
      const lines = (partial + chunk).split('\n');
      partial = lines.pop() ?? '';
      lines.forEach(options.onLine);
    });
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
    child.on('error', reject);
    let ended: Promise<string[]> = Promise.resolve([]);
    // Not at the close: what was left running may hold the pipes open.
    child.on('exit', () => {
      if (pid !== undefined) ended = endGroup(pid);
      ended.catch(reject);
    });
    child.on('close', (code) => {
      if (partial !== '') options.onLine?.(partial);
      ended.then((leftovers) => resolve({ code, output, leftovers }), reject);
    });
  });
  if (pid !== undefined) {
    running.set(pid, result);
    const forget = () => running.delete(pid);
    result.then(forget, forget);
  }
  return result;
}

/** Asks every command that still runs, and what it started, to end; waits for it, and insists after a while. */
export async function stopCommands(name: NodeJS.Signals): Promise<void> {
  const insist = setTimeout(() => signalGroups('SIGKILL'), KILL_AFTER_MS);
  const ends = [...running.values()];
  signalGroups(name);
  await Promise.allSettled(ends);
  clearTimeout(insist);
}

function signalGroups(name: NodeJS.Signals): void {
  for (const group of running.keys()) signal(-group, name);
}
