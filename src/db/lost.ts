// Failures of a connection, with the SQLSTATE that says what they mean.

import pg from 'pg';
import { SQLSTATE } from '#core/failure.ts';

/** A lost connection, as a SQLSTATE; the driver has a message for it but no code. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
  readonly code: string;

  constructor(message: string, code: string = SQLSTATE.connectionFailure, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

// The driver's own errors carry no code, the server's and the system's always do.
export function withCode(error: unknown): unknown {
  if (!(error instanceof Error) || 'code' in error || error instanceof AggregateError) return error;
  return /connect|terminated|timeout|not queryable/i.test(error.message)
    ? new ConnectionLost(error.message, SQLSTATE.connectionFailure, error)
    : error;
}

/** The server refused a statement and keeps the session. */
export function isRefusal(error: unknown): error is pg.DatabaseError {
  return error instanceof pg.DatabaseError && error.severity === 'ERROR';
}
