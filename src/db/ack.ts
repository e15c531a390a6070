// When a commit counts as done: on the server that took it, or in its cell.

import { StackError } from '../failure.ts';

/** local: on the server's own disk. quorum: on the standbys too that the server is set to wait for. */
export type Ack = 'local' | 'quorum';

export const ACK_VARIABLE = {
  SLUICE_ACK:
    'local or quorum: answer when the server has a change on its disk, or when its standbys have it too; default quorum where the server has synchronous_standby_names (docs/cells.md)',
};

/** Undefined where the server's own settings decide. */
export function readAck(env: NodeJS.ProcessEnv = process.env): Ack | undefined {
  const given = env.SLUICE_ACK;
  if (!given) return undefined;
  if (given !== 'local' && given !== 'quorum')
    throw new StackError(`SLUICE_ACK is "${given}"; it must be local or quorum`, 'see docs/cells.md');
  return given;
}

const SYNCHRONOUS_COMMIT: Readonly<Record<Ack, string>> = { local: 'local', quorum: 'on' };

/**
 * What each of our sessions begins with. The functions read `sluice.ack`: an answer that writes nothing waits for the cell by
 * it. Warnings have to arrive, because one of them says that a wait was cancelled.
 */
export function sessionSettings(ack: Ack | undefined = readAck()): Record<string, string> {
  return {
    timezone: 'UTC',
    client_min_messages: 'warning',
    // Our calls take milliseconds. A server that compiles the first sample of the console takes a second for it.
    jit: 'off',
    ...(ack && { 'sluice.ack': ack, synchronous_commit: SYNCHRONOUS_COMMIT[ack] }),
  };
}
