// Why a port cannot be listened on, as two lines that say what to do about it.

import { StackError } from '../failure.ts';

/** `bind` where the command has several processes. */
const LISTENING: ReadonlySet<string | undefined> = new Set(['listen', 'bind']);

export interface Place {
  readonly port: number;
  /** The variable that gives the port. */
  readonly portName: string;
  readonly host?: string | undefined;
}

/** A failure of listening that a person can mend becomes two lines; everything else stays what it is. */
export function explainedListen(error: unknown, { port, portName, host }: Place): unknown {
  const { code, syscall, hostname } = error as NodeJS.ErrnoException & { hostname?: string };
  const isTheHost = syscall === 'getaddrinfo' && hostname === host;
  if (!LISTENING.has(syscall) && !isTheHost) return error;
  if (code === 'EADDRINUSE')
    return new StackError(
      `Port ${port} is taken`,
      `stop what listens there, or set ${portName} to another port`,
      error,
    );
  if (code === 'EACCES')
    return new StackError(
      `this user may not listen on port ${port}`,
      `set ${portName} to a port from 1024 on`,
      error,
    );
  return new StackError(
    `SLUICE_HOST is "${host}", which is not an address of this machine`,
    'set it to one, such as 127.0.0.1, or unset it to listen on all',
    error,
  );
}
