import { spawn } from 'node:child_process';

export type CommandResult = { code: number | null; output: string };

export type CommandOptions = {
  cwd: string;
  /** Called for each line of stdout as it arrives; such lines are not part of `output`. */
  onLine?: (line: string) => void;
};

const KILL_AFTER_MS = 10_000;

/** What runs now, by process group, and when it will have ended. */
const running = new Map<number, Promise<unknown>>();

/** Runs a command in a process group of its own, so that stopping the run reaches its grandchildren too. */
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
    child.on('close', (code) => {
      if (pid !== undefined) running.delete(pid);
      if (partial !== '') options.onLine?.(partial);
      resolve({ code, output });
    });
  });
  if (pid !== undefined) running.set(pid, result);
  return result;
}

/** Asks every command that still runs, and what it started, to end; waits for it, and insists after a while. */
export async function stopCommands(signal: NodeJS.Signals): Promise<void> {
  const insist = setTimeout(() => signalGroups('SIGKILL'), KILL_AFTER_MS);
  const ends = [...running.values()];
  signalGroups(signal);
  await Promise.allSettled(ends);
  clearTimeout(insist);
}

function signalGroups(signal: NodeJS.Signals): void {
  for (const pid of running.keys()) {
    try {
      process.kill(-pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}
