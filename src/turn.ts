// A turn of the event loop: Node asks which sockets have something to read, and hands that out, one callback after the other.

/**
 * Resolves when all that has arrived by now is handed out. That takes two turns: what has arrived since this turn asked is read in
 * the next. With 64 clients a statement then carries 53 claims instead of 32, for 15 % less CPU.
 */
export async function endOfTurn(): Promise<void> {
  for (let turn = 0; turn < 2; turn++)
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
}
