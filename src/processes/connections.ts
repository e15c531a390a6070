// Connections on their way from the supervisor to a process. node:cluster keeps its copy of a connection until the process has said that
// it has it. Of a process that is killed before, it would keep the copy for ever, and the client would wait for an answer that no process
// makes. A connection that a process refuses, because it is stopping, waits in node:cluster for another: that copy must stay open.

import type { Worker } from 'node:cluster';

/** What node:cluster passes to a process: a handle of libuv, which closes once however often it is told to. */
interface Connection {
  close(): void;
}

/** What a process says of a connection; other messages of node:cluster have no such field. */
interface Answer {
  readonly accepted?: boolean;
}

export class Connections {
  /** What was sent to each process and not yet answered: node:cluster sends one at a time. */
  readonly #sent = new Map<Worker, Connection>();

  /** Watches what is sent to this process, until it is gone. */
  watch(worker: Worker): void {
    const { process: child } = worker;
    const send = child.send.bind(child) as (...args: unknown[]) => boolean;
    child.send = (...args: unknown[]): boolean => {
      if (isConnection(args[1])) this.#sent.set(worker, args[1]);
      return send(...args);
    };
    // Before node:cluster hears it, which sends the next one at once: that one is to be kept.
    child.prependListener('internalMessage', ({ accepted }: Answer) => {
      if (typeof accepted === 'boolean') this.#sent.delete(worker);
    });
  }

  /** The process is gone, and did not say whether it has what was sent to it last. */
  drop(worker: Worker): void {
    this.#sent.get(worker)?.close();
    this.#sent.delete(worker);
  }
}

function isConnection(sent: unknown): sent is Connection {
  return typeof sent === 'object' && sent !== null && 'close' in sent;
}
