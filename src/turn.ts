// A turn of the event loop: Node hands out what all sockets have received, one callback after the other, and then comes here.

export function endOfTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
