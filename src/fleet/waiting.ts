// Who waits for which cell. A question that is sent already would go on waiting for a silent cell long after its watch has given it up.

export class Waiting {
  /** What ends a wait, and the name of the cell that it is for. */
  readonly #waits = new Map<(why: Error) => void, string>();

  /** The answer; throws what `giveUp` gives where that comes first. */
  async for<Answer>(cell: string, asked: Promise<Answer>): Promise<Answer> {
    let end = (_: Error): void => undefined;
    const givenUp = new Promise<never>((_, reject) => {
      end = reject;
    });
    this.#waits.set(end, cell);
    try {
      return await Promise.race([asked, givenUp]);
    } finally {
      this.#waits.delete(end);
    }
  }

  giveUp(cell: string, why: Error): void {
    for (const [end, name] of this.#waits) if (name === cell) end(why);
  }
}
