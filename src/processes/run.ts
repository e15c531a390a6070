// The supervisor of a command: SIGTERM and SIGINT stop its processes, SIGHUP restarts them one at a time.

import { onStopSignal } from '../stop_signal.ts';
import { NotStarted, Supervisor, type SupervisorOptions } from './supervisor.ts';

export interface RunOptions extends SupervisorOptions {
  /** All processes listen; the address of the servers, where there are some. */
  onUp?(url: string | undefined): void;
}

const EXIT_IN_A_HURRY = 1;

/** Runs until stopped; returns the exit code. */
export async function runProcesses(options: RunOptions): Promise<number> {
  const { log } = options;
  const supervisor = new Supervisor(options);
  let isStopping = false;
  const forget = onStopSignal(['SIGINT', 'SIGTERM'], (signal) => {
    if (isStopping) {
      log.warn('left in a hurry; what was held comes back when its leases run out', { signal });
      supervisor.kill();
      process.exit(EXIT_IN_A_HURRY);
    }
    isStopping = true;
    void supervisor.stop();
  });
  let isUp = false;
  const restart = (): void => {
    if (isUp) void supervisor.restart();
  };
  process.on('SIGHUP', restart);
  try {
    const url = await supervisor.start();
    isUp = true;
    if (!isStopping) options.onUp?.(url);
    await supervisor.ended();
    return 0;
  } catch (error) {
    // It has said why.
    if (error instanceof NotStarted) return error.code;
    throw error;
  } finally {
    forget();
    process.off('SIGHUP', restart);
  }
}
