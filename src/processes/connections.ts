// Connections on their way from the supervisor to a process. node:cluster keeps its copy of a connection until the process has said that
// it has it. Of a process that is killed before, it would keep the copy for ever, and the client would wait for an answer that no process
// makes.

import type { Worker } from 'node:cluster';

/** What node:cluster passes to a process: a handle of libuv, which closes once however often it is told to. */
interface Connection {
  close(): void;
}

export class Connections {
  /** The last one that was sent to each process: the next is sent when this one has arrived. */
  readonly #last = new Map<Worker, Connection>();

  /** Watches what is sent to this process, until it is gone. */
  watch(worker: Worker): void {
    const { process: child } = worker;
    const send = child.send.bind(child) as (...args: unknown[]) => boolean;
    child.send = (...args: unknown[]): boolean => {
      if (isConnection(args[1])) this.#note(worker, args[1]);
      return send(...args);
    };
  }

  /** The process is gone. A connection that arrived is closed on this side already. */
  drop(worker: Worker): void {
    this.#last.get(worker)?.close();
    this.#last.delete(worker);
  }

  /** A process that is stopping hands one back, and then another has it. */
  #note(worker: Worker, connection: Connection): void {
    for (const [other, last] of this.#last) if (last === connection) this.#last.delete(other);
    this.#last.set(worker, connection);
  }
}

function isConnection(sent: unknown): sent is Connection {
  return typeof sent === 'object' && sent !== null && 'close' in sent;
}
